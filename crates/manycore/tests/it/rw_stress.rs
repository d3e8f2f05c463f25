//! Every reader-writer lock on real CPUs, with as many threads as CPUs and with more.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::thread;

use manycore::{RawRwLock, lock};
use manycore_history::run::unless_interpreted;

/// Two numbers that only a lock keeps equal.
struct Shared<L> {
    lock: L,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: the numbers are only touched with the lock held.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L: RawRwLock> Shared<L> {
    fn new() -> Self {
        Self { lock: L::new(), numbers: UnsafeCell::new([0; 2]) }
    }

    fn numbers(&self) -> [u64; 2] {
        // SAFETY: the caller holds the lock. The numbers are read from memory, so a lock that
        // wrongly lets a writer in is found.
        unsafe { self.numbers.get().read_volatile() }
    }

    /// Reads the numbers twice, some time apart, and releases the lock, which the caller has
    /// acquired for reading.
    fn look_and_release(&self, pause: u64) {
        let before = self.numbers();
        wait(pause);
        assert_eq!(before, [before[0]; 2], "a reader is admitted with a writer inside");
        assert_eq!(before, self.numbers(), "a writer is admitted with a reader inside");
        // SAFETY: the caller has acquired the lock for reading, as this function says.
        unsafe { self.lock.release_read() };
    }

    /// Adds one to both numbers, some time apart, and releases the lock, which the caller has
    /// acquired for writing.
    fn add_and_release(&self, pause: u64) {
        let [one, other] = self.numbers();
        assert_eq!(one, other, "two writers hold the lock");
        // SAFETY: the caller has acquired the lock for writing (contract of this function); it is
        // released once.
        unsafe {
            self.numbers.get().write_volatile([one + 1, other]);
            wait(pause);
            self.numbers.get().write_volatile([one + 1, other + 1]);
            self.lock.release_write();
        }
    }
}

fn wait(turns: u64) {
    (0..turns).for_each(|_| std::hint::black_box(()));
}

/// A different sequence for each seed.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Threads acquire in every way this many times; no acquisition is lost, and no thread waits for
/// ever. One section in `writes` writes.
fn counts<L: RawRwLock>(threads: u64, writes: u64) {
    const ROUNDS: u64 = unless_interpreted(40_000, 60);
    let (shared, start) = (Shared::<L>::new(), Barrier::new(threads as usize));
    let run = |seed| {
        let (mut random, mut written) = (random(seed), 0);
        start.wait();
        for _ in 0..ROUNDS / threads {
            let choice = random();
            let (tries, pause) = (choice % 4 == 0, choice >> 8 & 127);
            if choice >> 16 & 0xFFFF < 0x1_0000 / writes {
                if tries && !shared.lock.try_acquire_write() {
                    continue;
                }
                if !tries {
                    shared.lock.acquire_write();
                }
                shared.add_and_release(pause);
                written += 1;
            } else {
                if !tries || !shared.lock.try_acquire_read() {
                    shared.lock.acquire_read();
                }
                shared.look_and_release(pause);
            }
        }
        written
    };
    let written = thread::scope(|scope| {
        let workers: Vec<_> = (1..=threads).map(|seed| scope.spawn(move || run(seed))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>()
    });
    assert_eq!(shared.numbers.into_inner(), [written; 2]);
}

/// Readers share it, and no thread shares it with a writer.
fn excludes_and_shares<L: RawRwLock>() {
    let lock = L::new();
    // Another thread reads while this one does.
    let elsewhere = |f: fn(&L) -> bool| thread::scope(|s| s.spawn(|| f(&lock)).join().unwrap());
    let reads = |lock: &L| {
        let admitted = lock.try_acquire_read();
        if admitted {
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_read() };
        }
        admitted
    };
    lock.acquire_read();
    assert!(elsewhere(reads) && !elsewhere(L::try_acquire_write), "read");
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_read() };
    lock.acquire_write();
    assert!(!elsewhere(reads) && !elsewhere(L::try_acquire_write), "written");
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_write() };
    assert!(elsewhere(reads) && lock.try_acquire_write(), "free");
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                excludes_and_shares::<lock::$lock>();
                let many = unless_interpreted(16, 3);
                for (threads, writes) in [(2, 2), (2, 64), (4, 8), (many, 2), (many, 64)] {
                    counts::<lock::$lock>(threads, writes);
                }
            }
        )*
    };
}
manycore::for_each_rw_lock!(tests);
