//! Threads, the scheduler, time.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Test, in_threads, on_all_cpus};
use crate::arch::{cpu, tsc};
use crate::sync::pin::pin;
use crate::sync::wait::{Patience, WaitQueue, sleep_until};
use crate::task::sched;

pub const TESTS: &[Test] = &[
    ("threads::each_cpu_runs_one", each_cpu_runs_one),
    ("threads::a_spinning_thread_is_preempted", a_spinning_thread_is_preempted),
    ("threads::pinned_threads_stay", pinned_threads_stay),
    ("threads::waits_are_woken", waits_are_woken),
    (
        "threads::a_wake_up_that_was_too_early_is_not_the_last",
        a_wake_up_that_was_too_early_is_not_the_last,
    ),
    ("threads::deadlines_end_waits", deadlines_end_waits),
    ("threads::floating_point_survives_switches", floating_point_survives_switches),
];

fn each_cpu_runs_one() {
    let seen = Arc::new(AtomicU64::new(0));
    let by_threads = seen.clone();
    on_all_cpus(move |number| {
        assert!(cpu::number() as usize == number, "a thread runs on a CPU that it may not use");
        by_threads.fetch_or(1 << cpu::number(), Ordering::Relaxed); // Relaxed: a set
    });
    let all = u64::MAX >> (64 - cpu::count());
    assert!(seen.load(Ordering::Relaxed) == all, "some CPU runs no threads"); // Relaxed: as above
}

fn a_spinning_thread_is_preempted() {
    let flag = Arc::new(AtomicU32::new(0));
    // Two threads on one CPU: the first spins until the second has run.
    in_threads(
        2,
        |_| 1,
        move |number| {
            if number == 1 {
                flag.store(1, Ordering::Relaxed); // Relaxed, both: a flag
            }
            while flag.load(Ordering::Relaxed) == 0 {
                core::hint::spin_loop();
            }
        },
    );
}

fn pinned_threads_stay() {
    in_threads(
        2 * cpu::count(),
        |_| u64::MAX,
        |_| {
            for _ in 0..20 {
                let pin = pin();
                let here = pin.cpu().number();
                let start = tsc::now();
                while tsc::now() - start < 500_000 {
                    assert!(cpu::number() as usize == here, "a pinned thread was moved");
                }
                drop(pin);
                sched::give_way();
            }
        },
    );
}

fn waits_are_woken() {
    const ROUNDS: u32 = 2_000;
    // Two threads take turns: each wakes the other.
    let turns = Arc::new((AtomicU32::new(0), WaitQueue::new()));
    in_threads(
        2,
        |number| 1 << (number % cpu::count()),
        move |number| {
            for round in 0..ROUNDS {
                let turn = 2 * round + number as u32;
                // Acquire, Release: partners, of the two threads.
                let is_ours = || (turns.0.load(Ordering::Acquire) == turn).then_some(());
                turns.1.wait(Patience::ENDLESS, is_ours).expect("only the other thread ends it");
                turns.0.store(turn + 1, Ordering::Release); // partner of the Acquire above
                turns.1.wake_all();
            }
        },
    );
}

fn a_wake_up_that_was_too_early_is_not_the_last() {
    // This thread waits for all of them, and each of them wakes it: often before it sleeps.
    for _ in 0..500 {
        in_threads(2 * cpu::count(), |_| u64::MAX, |_| {});
    }
}

fn deadlines_end_waits() {
    let start = tsc::now();
    sleep_until(start + 30_000_000).expect("there are no signals");
    assert!(tsc::now() >= start + 30_000_000, "a sleep was too short");
}

fn floating_point_survives_switches() {
    in_threads(
        3 * cpu::count(),
        |_| u64::MAX,
        |number| {
            let mut sum = number as f64;
            let mut expected = number;
            let start = tsc::now();
            while tsc::now() - start < 30_000_000 {
                sum += 1.0;
                expected += 1;
            }
            assert!(sum == expected as f64, "a register was changed by another thread");
        },
    );
}
