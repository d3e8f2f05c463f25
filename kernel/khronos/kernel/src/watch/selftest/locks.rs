//! Each lock of the library, between the kernel's threads; and the kernel's own.

use alloc::sync::Arc;
use alloc::vec::Vec;

use manycore::lock::{self, PlainLock};
use manycore::{RawRwLock, for_each_lock, for_each_rw_lock};

use super::{Test, in_threads};
use crate::arch::cpu;
use crate::sync::order::Rank;
use crate::sync::parted::Parted;
use crate::sync::selftest::Counter;
use crate::sync::sleep::Sleep;
use crate::sync::spin::Spin;
use crate::task::sched;

/// The number of rounds. Each hand-over of a queue lock may wait until the host runs the next CPU.
/// If the guest has more CPUs than the host, that takes milliseconds, so there are fewer rounds.
fn rounds() -> u32 {
    400 / (cpu::count() as u32 + 1).max(2)
}

/// Threads increment a counter with the lock held, also two threads on a CPU. No increment is lost.
fn excludes<L: PlainLock + Send + Sync + 'static>() {
    let threads = cpu::count().min(4) + 1;
    let counter = Arc::new(Counter::new(L::new()));
    let shared = counter.clone();
    in_threads(threads, |_| u64::MAX, move |_| (0..rounds()).for_each(|_| shared.increment()));
    assert!(value(counter) == threads as u32 * rounds(), "an increment is lost");
}

/// As [`excludes`], for a lock with readers. A reader sees no half of a change.
fn readers_and_writers<L: RawRwLock + Send + Sync + 'static>() {
    let counter = Arc::new(Counter::new(L::new()));
    let shared = counter.clone();
    in_threads(
        4,
        |_| u64::MAX,
        move |number| {
            for _ in 0..rounds() {
                if number < 2 {
                    shared.write();
                } else {
                    assert!(shared.is_stable(), "somebody writes while another reads");
                }
            }
        },
    );
    assert!(value(counter) == 2 * rounds(), "an increment is lost");
}

/// The count, once the threads have dropped the counter, which they do shortly after their work.
fn value<L>(mut counter: Arc<Counter<L>>) -> u32 {
    loop {
        counter = match Arc::try_unwrap(counter) {
            Ok(counter) => return counter.into_value(),
            Err(counter) => counter,
        };
        sched::give_way();
    }
}

macro_rules! plain {
    ($($lock:ident),* $(,)?) => {
        const PLAIN: &[Test] =
            &[$((concat!("locks::", stringify!($lock)), excludes::<lock::$lock>)),*];
    };
}
for_each_lock!(plain);

macro_rules! with_readers {
    ($($lock:ident),* $(,)?) => {
        const WITH_READERS: &[Test] =
            &[$((concat!("locks::", stringify!($lock)), readers_and_writers::<lock::$lock>)),*];
    };
}
for_each_rw_lock!(with_readers);

pub const TESTS: &[Test] = &[
    ("locks::of_the_library", || PLAIN.iter().chain(WITH_READERS).for_each(|(_, test)| test())),
    ("locks::spin", spin),
    ("locks::sleep", sleep),
    ("locks::parted", parted),
];

fn spin() {
    let list = Arc::new(Spin::new(Rank::Small, Vec::new()));
    let shared = list.clone();
    in_threads(
        2 * cpu::count(),
        |_| u64::MAX,
        move |number| {
            (0..rounds()).for_each(|_| shared.lock().push(number));
        },
    );
    assert!(list.lock().len() == 2 * cpu::count() * rounds() as usize);
}

fn sleep() {
    let count = Arc::new(Sleep::new(Rank::Process, 0));
    let shared = count.clone();
    in_threads(
        2 * cpu::count(),
        |_| u64::MAX,
        move |_| {
            for _ in 0..rounds() {
                let mut count = shared.lock();
                let before = *count;
                sched::give_way(); // its holder may
                *count = before + 1;
            }
        },
    );
    assert!(*count.lock() == 2 * cpu::count() as u32 * rounds(), "an increment is lost");
}

/// A reader, by any part, sees no half of a change.
fn parted() {
    let pair = Arc::new(Parted::new(Rank::Process, (0, 0)));
    let shared = pair.clone();
    in_threads(
        2 * cpu::count(),
        |_| u64::MAX,
        move |number| {
            for round in 0..rounds() {
                if round % 4 == 0 {
                    let mut pair = shared.write();
                    pair.0 += 1;
                    sched::give_way(); // its holder may
                    pair.1 += 1;
                } else {
                    let pair = shared.read(number as u64 + u64::from(round));
                    let first = pair.0;
                    sched::give_way();
                    assert!((first, first) == *pair, "a change comes while another reads");
                }
            }
        },
    );
    let changes = 2 * cpu::count() as u32 * rounds().div_ceil(4);
    assert!(*pair.read(0) == (changes, changes), "a change is lost");
}
