//! `per-cpu-rw`: a reader-writer lock whose readers count on lines of their own CPUs.
//!
//! # Idea
//!
//! Each CPU has a counter. A reader increments its CPU's counter, checks that there is no writer,
//! and has the lock. It has written nothing that another CPU reads. A writer announces itself, and
//! waits until the sum of all counters is zero. Readers that come meanwhile wait at a [`PhaseRw`],
//! and so do writers. A writer holds the `PhaseRw` during its whole section, such a reader only
//! while it counts itself. So no thread starves: a waiting writer admits no more readers, and the
//! readers that have waited for one writer have the lock before the next.
//!
//! A thread may be on another CPU when it releases. It then counts down there, so that only the sum
//! of the counters is correct.
//!
//! # Source
//!
//! The "big-reader" lock of Linux (`brlock`, I. Molnar and D. Miller, 2000), later `lglock`, and
//! its successor `percpu_rw_semaphore` (M. Patocka, O. Nesterov, P. Zijlstra), from which we take
//! counting down on another CPU. There a writer waits for a grace period of RCU, so that readers do
//! without a fence; here an atomic addition is also the fence. Waiting in phases is ours.
//!
//! # Memory order
//!
//! Counting up, the check for a writer, counting down and the wake-up follow [`SideDoor`]. A writer
//! adds the counters up while they change. The sum is zero only if no reader has the lock. Once the
//! door is shut, each reader that has the lock has counted up where the writer can see it, and only
//! counts down from then on. A sum that misses the counting down is too large. A reader that is
//! turned away counts up and down, at the same counter, which can only make a sum larger. Each
//! counter changes by read-modify-writes. So a writer that sees the last of them (Acquire) sees the
//! accesses of all readers that counted down there (Release). A reader that came through the
//! `PhaseRw` sees from it what was written before, and counts up before it releases it: the next
//! writer sees the count.
//!
//! # Cost
//!
//! A reader executes two read-modify-writes of a line that stays with its CPU, and reads a common
//! line three times, which only writers change. A writer executes a swap of that line, and reads
//! 128 others. The lock is large: 17 KiB.
//!
//! # When not to use it
//!
//! Where one section in a hundred writes, or more; for many locks. A thread that reads must not
//! acquire the lock for reading again. The child of a fork finds the lock unchanged: if it was held
//! by a thread that does not exist in the child, it stays held.

use super::PhaseRw;
use super::side_door::SideDoor;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{CachePadded, array_of, const_new, cpu, order, tuning};
use crate::{LockInfo, Order, RawRwLock};

/// How many CPUs have a counter of their own; with more, some share.
pub const COUNTERS: usize = if cfg!(loom) { 2 } else { 128 };

/// A reader-writer lock with a counter for each CPU. If all bytes are zero, the lock is free.
///
/// Any thread may release it after reading.
#[derive(Debug)]
pub struct PerCpuRw {
    /// Readers that have entered on a CPU, less those that have left on it.
    counters: [CachePadded<AtomicU32>; COUNTERS],
    door: CachePadded<SideDoor>,
    phases: CachePadded<PhaseRw>,
}

impl PerCpuRw {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self {
                counters: array_of!(CachePadded(AtomicU32::new(0)); COUNTERS),
                door: CachePadded(SideDoor::new(true)),
                phases: CachePadded(PhaseRw::new()),
            }
        }
    }

    fn counters(&self) -> &[CachePadded<AtomicU32>] {
        &self.counters[..tuning::places(COUNTERS)]
    }

    /// The counter of this CPU.
    #[inline]
    fn counter(&self) -> &AtomicU32 {
        let counters = self.counters();
        &counters[cpu::current() as usize % counters.len()]
    }

    /// Whether no reader is in, with the door shut.
    fn is_empty(&self) -> bool {
        // SeqCst: partner of `fetch_add` in `try_acquire_read`, see `SideDoor`; acquires the writes
        // released by `leave`.
        let count = |c: &CachePadded<AtomicU32>| c.load(order!(SeqCst, "per-cpu-rw-sum"));
        self.counters().iter().map(count).fold(0, u32::wrapping_add) == 0
    }

    #[inline]
    fn leave(&self, counter: &AtomicU32) {
        // SeqCst: partner of the load in `is_empty`, to which it releases, and of the writer's
        // read, see `SideDoor::left`.
        counter.fetch_sub(1, order!(SeqCst, "per-cpu-rw-leave"));
        self.door.left();
    }

    #[cold]
    fn wait_to_read(&self) {
        self.phases.acquire_read();
        // Relaxed: `phases` orders it before the next writer.
        self.counter().fetch_add(1, Ordering::Relaxed);
        // SAFETY: `acquire_read`, above, has acquired `phases` for reading in this thread.
        unsafe { RawRwLock::release_read(&*self.phases) };
    }

    /// Lets readers in, and the next writer.
    fn end_write(&self) {
        self.door.open();
        // SAFETY: the callers hold this lock for writing, or have failed to acquire it after
        // `phases`: in both cases this thread has `phases`.
        unsafe { RawRwLock::release_write(&*self.phases) };
    }
}

impl Default for PerCpuRw {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: writers hold `phases`, and wait until the counters say that no reader is in; see the page
// for why readers that come meanwhile are seen, or see the writer.
unsafe impl RawRwLock for PerCpuRw {
    const INFO: LockInfo = LockInfo {
        name: "per-cpu-rw",
        summary: "readers count on their own CPU's line; a writer visits all; spins, then sleeps",
        source: "Linux brlock, 2000, and percpu_rw_semaphore",
        order: Order::Barging,
        blocks: true,
    };

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn try_acquire_read(&self) -> bool {
        if !self.door.looks_open() {
            return false;
        }
        let counter = self.counter();
        // SeqCst: partner of the writer's shutting of the door, see `SideDoor::admits`.
        counter.fetch_add(1, Ordering::SeqCst);
        if self.door.admits() {
            return true;
        }
        self.leave(counter);
        false
    }

    #[inline]
    fn acquire_read(&self) {
        if !self.try_acquire_read() {
            self.wait_to_read();
        }
    }

    #[inline]
    unsafe fn release_read(&self) {
        self.leave(self.counter());
    }

    fn try_acquire_write(&self) -> bool {
        if !self.phases.try_acquire_write() {
            return false;
        }
        self.door.shut();
        let alone = self.is_empty();
        if !alone {
            self.end_write();
        }
        alone
    }

    fn acquire_write(&self) {
        self.phases.acquire_write();
        self.door.shut();
        self.door.wait_until(|| self.is_empty());
    }

    unsafe fn release_write(&self) {
        self.end_write();
    }
}
