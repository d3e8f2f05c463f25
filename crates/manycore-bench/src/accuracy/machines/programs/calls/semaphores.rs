//! `semop` by threads that have a semaphore each, all in one array of System V.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::shared::{Part, Shared, TicketLock};

/// `struct sem`: value, last process, lock, list of those that wait.
#[derive(Default)]
#[repr(align(32))]
struct Semaphore {
    lock: TicketLock,
    value: AtomicU64,
}

/// The head of an array: its lock, and the time of the last operation.
#[derive(Default)]
struct Head {
    lock: TicketLock,
    /// Operations on several semaphores, which no thread makes here.
    complex: AtomicU32,
    time: AtomicU64,
}

/// Which lock an operation on one semaphore takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Locking {
    /// The array's.
    Array,
    /// That of the semaphore, after a look whether an operation on several is under way.
    Semaphore,
}

/// An array of semaphores. Two of them share a line.
pub(super) struct Semaphores {
    locking: Locking,
    head: CachePadded<Head>,
    semaphores: Box<[CachePadded<[Semaphore; 2]>]>,
}

impl Semaphores {
    pub fn new(threads: u32, locking: Locking) -> Self {
        let line = |_| CachePadded::default();
        let semaphores = (0..threads.div_ceil(2)).map(line).collect();
        Self { locking, head: CachePadded::default(), semaphores }
    }

    fn semaphore(&self, thread: u32) -> &Semaphore {
        &self.semaphores[thread as usize / 2][thread as usize % 2]
    }

    /// Adds one, or takes it away. The array's time is that of the last operation on any of them.
    fn operate(&self, semaphore: &Semaphore, work: &dyn Fn(f64)) {
        // Relaxed, here and below: the lock orders the value of the semaphore, and the time orders
        // nothing.
        let value = semaphore.value.load(Ordering::Relaxed);
        work(0.3);
        semaphore.value.store(value ^ 1, Ordering::Relaxed);
        self.head.time.store(manycore_sim::thread::now(), Ordering::Relaxed);
    }
}

impl Shared for Semaphores {
    fn knows(&self, part: Part) -> bool {
        part == Part::Semaphore
    }

    fn semop(&self, thread: u32, work: &dyn Fn(f64)) {
        let semaphore = self.semaphore(thread);
        work(0.7);
        match self.locking {
            Locking::Array => self.head.lock.locked(|| self.operate(semaphore, work)),
            Locking::Semaphore => semaphore.lock.locked(|| {
                // Relaxed: no thread makes complex operations.
                if self.head.complex.load(Ordering::Relaxed) == 0 {
                    self.operate(semaphore, work);
                }
            }),
        }
    }

    fn verify(&self) -> Result<(), String> {
        let all = || self.semaphores.iter().flat_map(|line| line.iter());
        // Relaxed: all threads have ended.
        match all().all(|one| one.value.load(Ordering::Relaxed) <= 1) {
            true => Ok(()),
            false => Err("a semaphore has a value that no operation gives it".to_owned()),
        }
    }
}
