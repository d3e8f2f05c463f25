//! An order explains the threads' results about names.

use khronos_fs::{Fs, Options, Sync};
use manycore_history::history::Clock;
use manycore_history::run::{Native, Threads, judge};

use crate::names::{self, Names};

fn is_linearizable(sync: Sync) {
    for seed in 0..4 {
        let fs = Fs::new(Options::new(sync));
        names::prepare(&mut fs.context());
        let clock = Clock::new();
        let logs = Native.parallel(3, |thread| {
            let mut log = clock.log(thread);
            names::run(&fs, &mut log, thread, 500, 2, seed);
            log.into_calls()
        });
        judge::<Names>(&Native, &logs);
        fs.context().check_all().unwrap();
    }
}

#[test]
fn of_dirlock() {
    is_linearizable(Sync::DirLock);
}

#[test]
fn of_lock() {
    is_linearizable(Sync::Lock);
}

#[test]
fn of_rcu() {
    is_linearizable(Sync::Rcu);
}

#[test]
fn of_rlu() {
    is_linearizable(Sync::Rlu);
}

#[test]
fn of_mvrlu() {
    is_linearizable(Sync::MvRlu);
}
