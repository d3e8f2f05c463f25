//! Flat combining on real CPUs: with more threads than CPUs, threads that come and go, and sections
//! that panic.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use manycore::delegate::FlatCombining;
use manycore_history::run::unless_interpreted;

/// Threads add to one of two numbers at a time, so that they differ while a section runs. None is
/// lost.
fn counts(threads: u64) {
    const ROUNDS: u64 = unless_interpreted(40_000, 100);
    let numbers = FlatCombining::new([0_u64; 2]);
    thread::scope(|scope| {
        for thread in 0..threads {
            let numbers = &numbers;
            scope.spawn(move || {
                for round in 0..ROUNDS / threads {
                    let (before, after) = numbers.with(move |numbers| {
                        assert_eq!(numbers[0], numbers[1], "two sections run at a time");
                        let before = numbers[0];
                        numbers[0] += 1;
                        (0..(thread + round) % 128).for_each(|_| std::hint::black_box(()));
                        numbers[1] += 1;
                        (before, numbers[1])
                    });
                    assert_eq!(after, before + 1, "a section's result is its own");
                }
            });
        }
    });
    assert_eq!(numbers.into_inner(), [ROUNDS / threads * threads; 2]);
}

#[test]
fn with_few_threads_and_with_many() {
    [1, 2, 4, 16, 100].into_iter().take(unless_interpreted(5, 3)).for_each(counts);
}

#[test]
fn threads_come_and_go() {
    const TIMES: u64 = unless_interpreted(50, 2);
    let total = FlatCombining::new(0_u64);
    for _ in 0..TIMES {
        thread::scope(|scope| {
            (0..8).for_each(|_| {
                scope.spawn(|| (0..20).for_each(|_| total.with(|total| *total += 1)));
            });
        });
    }
    assert_eq!(total.into_inner(), TIMES * 8 * 20);
}

/// Every fourth section panics. The panic reaches the thread that requested the section.
#[test]
fn a_panic_goes_back_to_whose_section_it_is() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = unless_interpreted(200, 8);
    let total = FlatCombining::new(0_u64);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let total = &total;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let fails = round % 4 == 3;
                    let section = move |total: &mut u64| {
                        *total += 1;
                        if fails {
                            resume_unwind(Box::new((thread, round))); // a panic without a message
                        }
                        *total
                    };
                    match catch_unwind(AssertUnwindSafe(|| total.with(section))) {
                        Ok(_) => assert!(!fails),
                        Err(payload) => {
                            assert_eq!(payload.downcast_ref(), Some(&(thread, round)));
                        }
                    }
                }
            });
        }
    });
    assert_eq!(total.into_inner(), THREADS * ROUNDS, "a section that panics has run");
}

#[test]
fn sections_may_borrow_and_results_may_own() {
    let names = FlatCombining::new(vec![String::from("first")]);
    let name = String::from("second");
    let all = names.with(|names| {
        names.push(name.clone());
        names.join(", ")
    });
    assert_eq!((all.as_str(), name.as_str()), ("first, second", "second"));
    assert_eq!(names.into_inner().len(), 2);
}
