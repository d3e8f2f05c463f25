//! Every lock and collection under many schedules: exclusion, no lost wake-up, no deadlock, results that an order explains.
//!
//! A failure names its seed; `MANYCORE_SEED=... cargo test -p manycore-simulated --test exploration NAME` repeats it.

mod clocks;
mod collections;
mod flat_combining;
mod ldu;
mod maps;
mod mutations;
mod mutex;
mod mvrlu;
mod ordered;
mod reclaim;
mod reverse_map;
mod rlu;
mod rw;
mod sessions;
mod wait_queue;

use std::time::Duration;

use manycore_sim::explore::Exploration;

/// Some thousand schedules, and a hundred where each takes long; with a planted mistake, as many as fit into a part of a minute.
fn explore() -> Exploration {
    let (schedules, at_least, seconds) = match std::env::var_os("MANYCORE_MUTATION") {
        Some(_) => (u64::MAX, 1, 15),
        None => (3000, 100, 5),
    };
    Exploration::default()
        .schedules(schedules)
        .at_least(at_least)
        .time(Duration::from_secs(seconds))
}
