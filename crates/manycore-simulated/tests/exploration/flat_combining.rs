//! Flat combining: each section runs once and alone, and its thread gets the result.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::delegate::FlatCombining;
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};

use crate::explore;

/// A simulated thread's private data, in a section that another may run: one host thread runs them
/// all.
struct Shared<T>(T);

// SAFETY: one thread of the host runs all simulated ones.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

fn program(threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let numbers = FlatCombining::new(Vec::new());
        let inside = &Shared(Cell::new(false));
        // An access, at which another thread may come in.
        let elsewhere = &AtomicU32::new(0);
        thread::parallel(threads, |me| {
            for round in 0..rounds {
                let length = numbers.with(move |numbers| {
                    let inside = inside.get();
                    assert!(!inside.replace(true), "two sections run at a time");
                    elsewhere.fetch_add(1, Ordering::Relaxed); // Relaxed: takes a step
                    numbers.push(me * rounds + round);
                    inside.set(false);
                    numbers.len()
                });
                assert!(length > round as usize, "a section's result is not its own");
            }
        });
        let mut numbers = numbers.into_inner();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..threads * rounds).collect::<Vec<_>>(), "each section runs once");
    }
}

#[test]
fn sections_run_once_and_alone() {
    explore().check(program(2, 3));
    explore().check(program(3, 2));
    explore().check(program(5, 1));
}
