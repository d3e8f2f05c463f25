//! Every lock and collection under many schedules: exclusion, no lost wake-up, no deadlock, results
//! that an order explains.
//!
//! A failure names its seed;
//! `MANYCORE_SEED=... cargo test -p manycore-simulated --test exploration NAME` repeats it.

mod art;
mod bytes;
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
mod space;
mod wait_queue;

use std::time::Duration;

use manycore_sim::explore::Exploration;

/// A thousand schedules, or some tens where each takes long. Or as many as `MANYCORE_SCHEDULES`
/// says, in at most ten times the time. With a planted mistake, as many as fit into a part of a
/// minute.
fn explore() -> Exploration {
    let asked = std::env::var("MANYCORE_SCHEDULES").ok();
    let asked = asked.map(|n| n.parse().expect("MANYCORE_SCHEDULES: a number of schedules"));
    let (schedules, at_least, seconds) = match (std::env::var_os("MANYCORE_MUTATION"), asked) {
        (Some(_), _) => (u64::MAX, 1, 15),
        (None, Some(schedules)) => (schedules, 100, 20),
        (None, None) => (1000, 25, 2),
    };
    Exploration::default()
        .schedules(schedules)
        .at_least(at_least)
        .time(Duration::from_secs(seconds))
}
