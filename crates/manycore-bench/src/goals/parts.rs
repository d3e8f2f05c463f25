//! What is measured, in parts.

use std::time::Duration;

use super::Options;
use crate::rmap::{self, Load};
use crate::set::peers::is_foreign;
use crate::set::{Keys, Popularity, Task};

/// The parts that there are.
pub const NAMES: [&str; 10] = [
    "list",
    "hash",
    "zipf",
    "100k",
    "10m",
    "index",
    "index-1m",
    "rmap",
    "simulated",
    "index-simulated",
];

/// The numbers of threads of most parts: one, one for each CPU, and more than CPUs.
pub(super) const THREADS: [u32; 3] = [1, 2, 8];

/// Ours for many keys.
pub(super) const GROWING: &str = "mvrlu-growing";

/// Hash tables of other libraries, to compare with large ones.
pub(super) const RIVALS: [&str; 3] = ["papaya", "scc", "dashmap"];

/// A part's weight in the time for all.
pub(super) fn share(name: &str) -> f64 {
    match name {
        "list" | "hash" => 5.0,
        "zipf" => 1.0,
        "100k" => 3.0,
        "10m" | "index" | "index-1m" => 4.0,
        "rmap" => 2.0,
        // Is simulated.
        _ => 0.0,
    }
}

/// Points, and mechanisms that are measured at each. The first one is the base line.
pub(super) struct Part {
    pub points: Vec<Task>,
    pub mechanisms: Vec<String>,
}

/// A part about sets, including those of C libraries if they were built.
pub(super) fn of_sets(name: &str, foreign: bool) -> Part {
    let hash = Keys { buckets: 1_000, ..Keys::of(10_000) };
    let (structure, updates, threads, keys): (_, &[f64], &[u32], Vec<Keys>) = match name {
        "list" => ("list", &[2.0, 20.0, 80.0], &THREADS, vec![Keys::of(1_000)]),
        "hash" => ("hash", &[2.0, 20.0, 80.0], &THREADS, vec![hash]),
        "zipf" => {
            let uniform = Keys { range: 10_000, ..Keys::of(5_000) };
            let zipf = Keys { popularity: Popularity::Zipf(1.0), ..uniform.clone() };
            ("hash", &[20.0], &[2, 8], vec![uniform, zipf])
        }
        "100k" => ("hash", &[0.0, 5.0, 20.0, 50.0], &[2, 8], vec![large(100_000)]),
        _ => ("hash", &[0.0, 5.0, 20.0, 50.0], &[2], vec![large(10_000_000)]),
    };
    let mechanisms: &[&str] = match name {
        "list" => &[
            "rcu",
            "mvrlu",
            "rlu",
            "harris",
            "crossbeam-epoch",
            "crossbeam-harris",
            "urcu-memb",
            "urcu-qsbr",
        ],
        "hash" => &["rcu", "mvrlu", "rlu", "crossbeam-epoch", "urcu-memb", "urcu-qsbr"],
        "zipf" => &["mvrlu"],
        _ => &[GROWING, "mvrlu", "rcu", RIVALS[0], RIVALS[1], RIVALS[2]],
    };
    let ours = crate::set::contenders::native::names(structure);
    let others = crate::set::peers::names(structure);
    let is_there = |name: &&&str| {
        ours.iter().any(|own| own == **name)
            || others.contains(name) && (foreign || !is_foreign(name))
    };
    let mechanisms: Vec<String> =
        mechanisms.iter().filter(is_there).map(|name| (*name).to_owned()).collect();
    let mut points = Vec::new();
    for keys in &keys {
        for update in updates {
            points.extend(threads.iter().map(|threads| Task {
                structure: structure.to_owned(),
                sync: mechanisms[0].clone(),
                threads: *threads,
                update: *update,
                keys: keys.clone(),
            }));
        }
    }
    Part { points, mechanisms }
}

/// One bucket for each key, in tables that do not grow. Tables of other libraries have as much
/// room.
fn large(keys: u64) -> Keys {
    Keys { buckets: keys, ..Keys::of(keys) }
}

/// Reverse maps with 8 threads, in as many rounds as there is time for.
pub(super) fn reverse_map(options: &Options, time: Duration) -> rmap::Options {
    let settings = rmap::Options {
        syncs: ["ldu", "ldu-per-core", "ldu-forest"].map(str::to_owned).to_vec(),
        threads: vec![8],
        updates: vec![100.0, 50.0],
        load: Load { seed: options.seed, ..Load::default() },
        progress: options.progress,
        ..rmap::Options::default()
    };
    let slices = (settings.syncs.len() + 1) * settings.updates.len();
    // Warm-up, and what it takes to start and to end.
    let round = settings.duration.mul_f64(1.4) * slices as u32;
    let rounds = (time.as_secs_f64() / round.as_secs_f64()) as u32;
    rmap::Options { rounds: rounds.clamp(6, 1_000), ..settings }
}
