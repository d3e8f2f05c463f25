//! The goals on simulated machines: exact, because a simulation repeats.

use std::time::Duration;

use manycore_measure::{Bound, Claim, Measurement};
use manycore_sim::{Model, model};

use super::Options;
use crate::failure::Failure;
use crate::rmap::{self, Load};
use crate::scorecard::Scorecard;
use crate::set::simulated as set;
use crate::set::{Keys, TaskGrid};
use crate::unjudged::UnjudgedClaim;
use crate::wait_pool::Pooled;

/// Simulates all, and judges it.
pub(super) fn run(options: &Options) -> Result<Scorecard, Failure> {
    let mut found = versions(options)?;
    let maps = reverse_maps(options)?;
    found.measurements.extend(maps.measurements);
    found.claims.extend(maps.claims);
    found.failures.extend(maps.failures);
    Ok(found)
}

fn machine(name: &str) -> Result<Model, Failure> {
    model::find(name).map_err(|problem| Failure::Failed(problem.to_string()))
}

/// Hash tables on a machine with 448 CPUs.
fn versions(options: &Options) -> Result<Scorecard, Failure> {
    let all = crate::set::contenders::simulated::names("hash");
    let syncs: Vec<String> =
        ["mvrlu", "rlu"].map(str::to_owned).into_iter().filter(|sync| all.contains(sync)).collect();
    let settings = set::Options {
        workload: TaskGrid {
            syncs,
            threads: vec![56, 448],
            updates: vec![20.0],
            keys: Keys { buckets: 1_000, seed: options.seed, ..Keys::of(10_000) },
            ..TaskGrid::default()
        },
        ..set::Options::new(machine("xeon-8180-8x28x2-like")?, options.pool.clone())
    };
    let ran = set::run(&settings)?;
    let claim = |sync: &str, bound| {
        let open = UnjudgedClaim {
            id: format!("simulated-{sync}"),
            text: format!("simulated hash table by {sync}: 448 threads over 56, 20 % updates"),
            bound,
        };
        scaled(open, &ran.measurements, sync, [56, 448], 1.0)
    };
    let claims = vec![claim("mvrlu", Bound::AtLeast(5.0)), claim("rlu", Bound::AtMost(2.0))];
    Ok(Scorecard { claims, measurements: ran.measurements, failures: ran.failures })
}

/// Reverse maps on a machine with 120 CPUs.
fn reverse_maps(options: &Options) -> Result<Scorecard, Failure> {
    let settings = rmap::Options {
        syncs: ["ldu-per-core", "ldu-forest"].map(str::to_owned).to_vec(),
        threads: vec![1, 120],
        load: Load { outside_ns: 10_000.0, seed: options.seed, ..Load::default() },
        duration: Duration::from_millis(2),
        progress: options.progress,
        ..rmap::Options::default()
    };
    let ran = rmap::simulate(&settings, &machine("xeon-e7-8870-8x15-like")?, &options.pool)?;
    let open = UnjudgedClaim {
        id: "simulated-ldu-per-core".to_owned(),
        text: "simulated rmap by ldu-per-core, 2 ms: 120 threads over 120 times one".to_owned(),
        bound: Bound::AtLeast(0.85),
    };
    let claims = vec![scaled(open, &ran.measurements, "ldu-per-core", [1, 120], 120.0)];
    Ok(Scorecard { claims, measurements: ran.measurements, failures: ran.failures })
}

/// The throughput with the second number of threads must be this many times that with the first.
fn scaled(
    open: UnjudgedClaim,
    measurements: &[Measurement],
    sync: &str,
    threads: [u32; 2],
    times: f64,
) -> Claim {
    let value = |threads: u32| {
        let is_meant =
            |record: &&Measurement| record.mechanism.name() == sync && record.threads == threads;
        measurements.iter().find(is_meant).map(|record| record.value)
    };
    let [first, second] = threads.map(value);
    match first.zip(second) {
        Some((first, second)) => {
            let ratio = second / (times * first);
            let note = "simulated: without an interval".to_owned();
            open.once(Pooled { value: ratio, interval: Some((ratio, ratio)) }, note)
        }
        None => open.missing(&format!("{sync} was not measured")),
    }
}
