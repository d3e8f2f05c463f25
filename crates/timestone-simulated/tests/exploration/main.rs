//! A durable store under many schedules, and cuts of the power at every call of the disk in each of
//! them; and the mistakes that these tests have to find.
//!
//! A failure names its seed;
//! `MANYCORE_SEED=... cargo test -p timestone-simulated --test exploration NAME` repeats it.

// The engine is that of `timestone`'s tests, which names the crate so.
extern crate timestone_simulated as timestone;

#[path = "../../../timestone/tests/it/engine.rs"]
mod engine;
mod histories;
mod host;
mod images;
mod mutations;
mod operations;
mod volume;

use std::time::Duration;

use manycore_sim::explore::Exploration;

/// Runs some hundred schedules, or as many as `MANYCORE_SCHEDULES` says in ten times the time; with
/// a planted mistake, as many as fit into a part of a minute.
fn explore() -> Exploration {
    let asked = std::env::var("MANYCORE_SCHEDULES").ok();
    let asked = asked.map(|n| n.parse().expect("MANYCORE_SCHEDULES: a number of schedules"));
    let (schedules, at_least, seconds) = match (std::env::var_os("MANYCORE_MUTATION"), asked) {
        (Some(_), _) => (u64::MAX, 1, 15),
        (None, Some(schedules)) => (schedules, 100, 10),
        (None, None) => (1000, 25, 1),
    };
    Exploration::default()
        .schedules(schedules)
        .at_least(at_least)
        .time(Duration::from_secs(seconds))
}
