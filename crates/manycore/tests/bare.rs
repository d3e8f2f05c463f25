//! Every lock on the back end without an operating system, under the smallest kernel there is: this
//! file.
//!
//! `RUSTFLAGS="--cfg manycore_bare" cargo test -p manycore --test bare`
#![cfg(manycore_bare)]
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a kernel is no algorithm"
)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use manycore::clock::Ordo;
use manycore::delegate::FlatCombining;
use manycore::lock::{self, PlainLock};
use manycore::sync::{Deadline, node};
use manycore::{RawRwLock, for_each_lock, for_each_rw_lock};

/// Time counts from here.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The sleeping threads and their addresses, the longest sleep first.
static SLEEPERS: Mutex<Vec<(usize, Thread)>> = Mutex::new(Vec::new());

fn time_left(deadline: &Deadline) -> Duration {
    let until = Duration::new(deadline.seconds.max(0).cast_unsigned(), deadline.nanoseconds);
    until.saturating_sub(START.elapsed())
}

// SAFETY, for each symbol below: no other code defines it, and it has the signature that
// `sync/bare.rs` declares.

#[unsafe(no_mangle)]
extern "C" fn manycore_futex_wait(
    word: *const AtomicU32,
    expected: u32,
    deadline: *const Deadline,
) -> bool {
    // SAFETY: both outlive the call (contract of the symbol); the deadline may be null.
    let (word, deadline) = unsafe { (&*word, deadline.as_ref()) };
    let address = word.as_ptr() as usize;
    {
        let mut sleepers = SLEEPERS.lock().unwrap();
        // Relaxed: the table's mutex orders this look with the wake-ups.
        if word.load(Ordering::Relaxed) != expected {
            return false;
        }
        sleepers.push((address, thread::current()));
    }
    match deadline {
        None => thread::park(),
        Some(deadline) => thread::park_timeout(time_left(deadline)),
    }
    // A wake-up has taken this thread off the table, even if time ran out at the same moment.
    let this = thread::current().id();
    let mut sleepers = SLEEPERS.lock().unwrap();
    let place = sleepers.iter().position(|(of, thread)| *of == address && thread.id() == this);
    place.is_some_and(|place| {
        sleepers.remove(place);
        deadline.is_some_and(|deadline| time_left(deadline).is_zero())
    })
}

#[unsafe(no_mangle)]
extern "C" fn manycore_futex_wake(word: *const AtomicU32, count: u32) {
    let mut sleepers = SLEEPERS.lock().unwrap();
    for _ in 0..count {
        match sleepers.iter().position(|(address, _)| *address == word as usize) {
            Some(first) => sleepers.remove(first).1.unpark(),
            None => break,
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn manycore_deadline_passed(deadline: *const Deadline) -> bool {
    // SAFETY: `deadline` is not null, and outlives the call (contract of the symbol).
    time_left(unsafe { &*deadline }).is_zero()
}

#[unsafe(no_mangle)]
extern "C" fn manycore_yield() {
    thread::yield_now();
}

#[unsafe(no_mangle)]
extern "C" fn manycore_ticks() -> u64 {
    u64::try_from(START.elapsed().as_nanos()).expect("500 years have not passed")
}

#[unsafe(no_mangle)]
extern "C" fn manycore_nanoseconds(ticks: u64) -> u64 {
    ticks
}

#[unsafe(no_mangle)]
extern "C" fn manycore_clock_boundary() -> u64 {
    BOUNDARY
}

#[unsafe(no_mangle)]
extern "C" fn manycore_cpu_count() -> u32 {
    2
}

#[unsafe(no_mangle)]
extern "C" fn manycore_thread_id() -> u32 {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        // Relaxed: only the number matters.
        static ID: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    ID.with(|id| *id)
}

/// One counter serves all CPUs, so two reads differ by at most the time of one read.
const BOUNDARY: u64 = 1_000;

/// A clock of counters asks the kernel for their boundary.
#[test]
fn the_kernel_says_the_boundary() {
    assert_eq!(Ordo::measured().boundary(), BOUNDARY);
}

/// Each CPU takes nodes for queue locks from a part of the pool of its own.
#[test]
fn nodes_of_two_cpus_are_apart() {
    const NODES: usize = 8;
    let take_some = || {
        let nodes: Vec<_> = (0..NODES).map(|_| node::take::<u64>()).collect();
        // SAFETY: this thread took them, and nothing refers to them.
        nodes.iter().for_each(|&node| unsafe { node::give_back(node) });
        (cpu(), nodes.iter().map(|node| node.as_ptr().addr()).collect::<Vec<_>>())
    };
    let mut by_cpu = [const { Vec::new() }; 2];
    while by_cpu.iter().any(Vec::is_empty) {
        let (cpu, addresses) = thread::spawn(take_some).join().unwrap();
        by_cpu[cpu as usize].extend(addresses);
    }
    assert!(by_cpu[0].iter().max() < by_cpu[1].iter().min(), "{by_cpu:x?}");
}

/// A CPU for each thread.
fn cpu() -> u32 {
    manycore_thread_id() % manycore_cpu_count()
}

#[unsafe(no_mangle)]
extern "C" fn manycore_cpu_current() -> u32 {
    cpu()
}

#[unsafe(no_mangle)]
extern "C" fn manycore_node_count() -> u32 {
    2
}

#[unsafe(no_mangle)]
extern "C" fn manycore_node_current() -> u32 {
    cpu()
}

/// A number that only a lock protects.
struct Counter<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is only touched with the lock held.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L: PlainLock> Counter<L> {
    fn increment(&self) {
        self.lock.acquire();
        // SAFETY: the lock is held while the value is touched, and was acquired above.
        unsafe {
            *self.value.get() += 1;
            self.lock.release();
        }
    }
}

/// Threads increment with the lock held. No increment is lost, and no thread sleeps for ever.
fn excludes<L: PlainLock>() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 2_000;
    let counter = Counter { lock: L::new(), value: UnsafeCell::new(0) };
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| (0..ROUNDS).for_each(|_| counter.increment()));
        }
    });
    assert_eq!(counter.value.into_inner(), THREADS * ROUNDS);
}

/// A deadline ends a wait, and the lock works afterwards.
fn gives_up<L: PlainLock>() {
    let lock = L::new();
    let soon = START.elapsed() + Duration::from_millis(20);
    let seconds = soon.as_secs().cast_signed();
    let deadline = Deadline { wall: false, seconds, nanoseconds: soon.subsec_nanos() };
    lock.acquire();
    thread::scope(|s| {
        s.spawn(|| assert!(!lock.acquire_until(deadline), "it is held")).join().unwrap()
    });
    assert!(START.elapsed() >= soon, "it waited until the deadline");
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release() };
    lock.acquire();
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                excludes::<lock::$lock>();
                gives_up::<lock::$lock>();
            }
        )*
    };
}
for_each_lock!(tests);

impl<L: RawRwLock> Counter<L> {
    fn write(&self) {
        self.lock.acquire_write();
        // SAFETY: the lock is held while the value is touched, and was acquired above.
        unsafe {
            *self.value.get() += 1;
            self.lock.release_write();
        }
    }

    fn read(&self) {
        self.lock.acquire_read();
        // SAFETY: the lock is held for reading, so no thread writes; it is released once.
        unsafe {
            let before = self.value.get().read_volatile();
            thread::yield_now();
            assert_eq!(before, self.value.get().read_volatile(), "somebody writes");
            self.lock.release_read();
        }
    }
}

/// Some threads increment and others read. No thread reads while another increments, and none
/// sleeps for ever.
fn readers_and_writers<L: RawRwLock>() {
    const ROUNDS: u32 = 2_000;
    let counter = Counter { lock: L::new(), value: UnsafeCell::new(0) };
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| (0..ROUNDS).for_each(|_| counter.write()));
            s.spawn(|| (0..ROUNDS).for_each(|_| counter.read()));
        }
    });
    assert!(counter.lock.try_acquire_write(), "it is free");
    assert_eq!(counter.value.into_inner(), 2 * ROUNDS);
}

macro_rules! rw_tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                readers_and_writers::<lock::$lock>();
            }
        )*
    };
}
for_each_rw_lock!(rw_tests);

/// Sections of several threads run one at a time, and none is lost.
#[test]
fn flat_combining() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 2_000;
    let count = FlatCombining::new(0);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| (0..ROUNDS).for_each(|_| count.with(|count| *count += 1)));
        }
    });
    assert_eq!(count.into_inner(), THREADS * ROUNDS);
}
