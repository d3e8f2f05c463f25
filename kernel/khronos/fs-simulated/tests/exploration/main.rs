//! Calls of several threads under many schedules.
//!
//! A failure names its seed; `MANYCORE_SEED=... cargo test -p khronos-fs-simulated NAME` repeats
//! it.

// The name that the shared modules know.
extern crate khronos_fs_simulated as khronos_fs;

mod batches;
mod mutations;
#[path = "../../../fs/tests/it/names.rs"]
mod names;
mod trees;
mod views;

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Duration;

use khronos_fs::{Fs, Options, Sync};
use manycore_history::history::Clock;
use manycore_history::run::{Explored, Threads, judge};
use manycore_sim::explore::Exploration;

/// As many schedules as fit into a second; with a planted mistake, into a part of a minute.
fn explore() -> Exploration {
    let is_mutated = std::env::var_os("MANYCORE_MUTATION").is_some();
    let (schedules, seconds) = if is_mutated { (u64::MAX, 6) } else { (1000, 1) };
    Exploration::default().schedules(schedules).at_least(5).time(Duration::from_secs(seconds))
}

/// A file system that is not dropped after a failure, because no simulated thread runs any more.
struct Simulated(ManuallyDrop<Fs>);

impl Deref for Simulated {
    type Target = Fs;

    fn deref(&self) -> &Fs {
        &self.0
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the value is dropped here only, and not used after it.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// One chain a directory, so that threads do meet.
fn fs(sync: Sync) -> Simulated {
    with_chains(sync, 1)
}

fn with_chains(sync: Sync, chains: usize) -> Simulated {
    Simulated(ManuallyDrop::new(Fs::new(Options { chains, ..Options::new(sync) })))
}

/// With a record of what changes.
fn recorded(sync: Sync) -> Simulated {
    let options = Options { chains: 1, records: true, ..Options::new(sync) };
    Simulated(ManuallyDrop::new(Fs::new(options)))
}

fn is_linearizable(sync: Sync) {
    for seed in 0..3 {
        explore().check(|| {
            let fs = fs(sync);
            names::prepare(&mut fs.context());
            let clock = Clock::new();
            let logs = Explored.parallel(2 + seed as u32 % 2, |thread| {
                let mut log = clock.log(thread);
                names::run(&fs, &mut log, thread, 4, 2, seed);
                log.into_calls()
            });
            judge::<names::Names>(&Explored, &logs);
            fs.context().check_all().unwrap();
        });
    }
}

#[test]
fn names_of_dirlock() {
    is_linearizable(Sync::DirLock);
}

#[test]
fn names_of_lock() {
    is_linearizable(Sync::Lock);
}

#[test]
fn names_of_rcu() {
    is_linearizable(Sync::Rcu);
}

#[test]
fn names_of_rlu() {
    is_linearizable(Sync::Rlu);
}

#[test]
fn names_of_mvrlu() {
    is_linearizable(Sync::MvRlu);
}
