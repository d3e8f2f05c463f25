//! Flat combining: each section runs once and alone, its thread gets the result, and no thread
//! sleeps for ever.

use std::sync::Arc;

use loom::thread::{self, JoinHandle};
use manycore::delegate::FlatCombining;

use crate::{check, check_first};

/// Adds one, this many times. A thread's own additions are in order: its results grow.
fn add(counter: &FlatCombining<u32>, rounds: u32) {
    let mut last = 0;
    for _ in 0..rounds {
        let value = counter.with(|value| {
            *value += 1;
            *value
        });
        assert!(value > last, "a section's result is not its own");
        last = value;
    }
}

fn adds(threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let counter = Arc::new(FlatCombining::new(0));
        let workers: Vec<_> = (1..threads)
            .map(|_| {
                let counter = counter.clone();
                thread::spawn(move || add(&counter, rounds))
            })
            .collect();
        add(&counter, rounds);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(counter.with(|value| *value), threads * rounds);
    }
}

#[test]
fn two_threads() {
    check(2, adds(2, 2));
}

#[test]
fn three_threads() {
    check(1, adds(3, 1));
    check_first(10_000, 2, adds(3, 1));
}

/// Threads that one has started.
struct Started([JoinHandle<()>; 2]);

// SAFETY: returned by a section that no other thread can run.
unsafe impl Send for Started {}

/// Two threads arrive while a third is in a section, so that one may get the record that another
/// has given back.
#[test]
fn records_change_hands() {
    check(1, || {
        let counter = Arc::new(FlatCombining::new(0));
        let shared = counter.clone();
        let Started(workers) = counter.with(move |value| {
            *value += 1;
            Started([(); 2].map(|()| {
                let counter = shared.clone();
                thread::spawn(move || add(&counter, 1))
            }))
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(counter.with(|value| *value), 3);
    });
}
