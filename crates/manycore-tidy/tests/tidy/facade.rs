//! Algorithms know the machine only as `manycore::sync` shows it.
//!
//! One source then serves a Linux program, a kernel, the model checker and the simulator: each
//! brings its own back end, and each would miss accesses that bypass it.

use crate::Finding;
use crate::source::{Source, TREE};

const FACADE: &str = "crates/manycore/src/sync/";

/// The environment of an algorithm in a process: no other back end builds this.
const PROCESS: &str = "crates/manycore/src/reclaim/process.rs";

/// What only the facade may name, and what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("sync :: atomic", "use crate::sync::atomic"),
    ("core :: arch", "put it behind the facade"),
    ("loom ::", "the facade's loom back end names it"),
    ("static", "no kernel or simulated machine sees a static: keep state in the object"),
    ("thread_local", "use sync::thread"),
    ("thread :: spawn", "algorithms make no threads"),
    ("std ::", "there is none below a kernel: use core, or what the facade has"),
    ("Instant ::", "use sync::clock"), // not the associated type of `lock_api` that has this name
];

fn check(file: &Source) -> Vec<Finding> {
    let is_exempt = file.path.starts_with(FACADE) || file.path == PROCESS;
    if !file.is_source_of("manycore") || is_exempt {
        return Vec::new();
    }
    let found = |(sequence, advice): &(&str, &str)| -> Vec<_> {
        let hits =
            file.occurrences(sequence).into_iter().filter(|rest| !is_facade(file, rest[0].line));
        hits.map(|rest| {
            Finding::new(
                &file.path,
                rest[0].line,
                format!("`{}`: {advice}", sequence.replace(' ', "")),
            )
        })
        .collect()
    };
    FORBIDDEN.iter().flat_map(found).collect()
}

/// `crate::sync::atomic` is the facade's own path, and the crate's root may use `cfg(loom)`.
fn is_facade(file: &Source, line: usize) -> bool {
    let text = file.line(line);
    text.contains("crate::sync::atomic") || text.contains("cfg(") || text.contains("cfg_attr(")
}

#[test]
fn algorithms_go_through_the_facade() {
    crate::report(TREE.iter().flat_map(check));
}

#[test]
fn notices_a_way_past_the_facade() {
    let lines = |path, text| crate::lines(check(&Source::new(path, text)));
    let lock = "crates/manycore/src/lock/a.rs";
    assert_eq!(lines(lock, "use core::sync::atomic::AtomicU32;"), [1]);
    assert_eq!(lines(lock, "fn f() {\n static X: u8 = 0;\n}"), [2]);
    assert_eq!(lines(lock, "macro_rules! m { () => { std::thread::yield_now() } }"), [1]);
    assert_eq!(lines(lock, "thread_local! { static X: u8 = 0 }").len(), 2);
    assert!(
        lines(lock, "use crate::sync::atomic::AtomicU32;\nfn f(_: &'static str) {}").is_empty()
    );
    assert!(lines(lock, "#[cfg(test)]\nmod tests {\n use std::thread;\n}").is_empty());
    assert!(lines("crates/manycore/src/sync/linux/a.rs", "static X: u8 = 0;").is_empty());
}
