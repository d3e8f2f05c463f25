//! `bravo`: a reader-writer lock that readers bypass by a mark in a table.
//!
//! # Idea
//!
//! One table, the same for all locks of the process, has thousands of slots. While a lock is
//! *biased* towards readers, a reader writes the lock's address into a slot, which a hash of the
//! thread and the lock chooses, and has the lock. So readers on many CPUs write different lines. If
//! the slot is in use, the reader acquires the inner lock, a [`PhaseRw`]. A writer acquires the
//! inner lock. If there is a bias, the writer revokes it: it forbids the use of the table, reads
//! the whole table, and waits for each reader of its lock. That is slow. So a reader that has the
//! inner lock may restore the bias only when nine times as long has passed as the last revocation
//! took. Writers thus lose at most a tenth of their time.
//!
//! # Source
//!
//! D. Dice and A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX ATC 2019: the
//! table of 4096 slots, the factor of nine. There a reader keeps its slot until it releases, and a
//! writer spins until a slot is cleared. Here:
//!
//! - A release reads the thread's slot again, so that a reader need not keep it. Two threads may
//!   share a slot. Then one may clear the mark of the other, and leaves its own hold on the inner
//!   lock to that thread. There are always as many holds as readers, and it does not matter which
//!   hold belongs to which reader: a thread that finds no mark in its slot has a hold on the inner
//!   lock, either its own or one that was left to it.
//! - A writer sleeps after some microseconds, and a reader that leaves wakes it.
//!
//! # Memory order
//!
//! The rules for marks, the bias and the sleeping writer are those of [`SideDoor`]. A slot changes
//! by compare-and-swaps only. So a writer that finds no mark of its lock there (Acquire) sees all
//! accesses of each reader that cleared its mark there (Release), or that marked the slot for
//! another lock later. A thread to which a hold on the inner lock was left sees what the hold's
//! first owner did (Acquire), and passes that on with the hold. A writer sets the time at which a
//! bias is possible again, and readers of the inner lock read it: the inner lock orders them.
//!
//! # Cost
//!
//! With a bias, a reader executes two compare-and-swaps of its slot, and reads a word that rarely
//! changes three times. A writer has the cost of `PhaseRw`; with a bias it first reads 4096 slots,
//! which takes some microseconds. The lock takes 40 bytes.
//!
//! # When not to use it
//!
//! Where writers are frequent: then it acts as `PhaseRw`, with more to read. A thread that reads
//! must not acquire the lock for reading again, and has to release it itself. The child of a fork
//! finds the marks of its parent's threads, and the locks that they held.

use super::PhaseRw;
use super::side_door::SideDoor;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{clock, const_new, order, table};
use crate::{LockInfo, Order, RawRwLock};

/// After a revocation there is no bias for this many times the duration of the revocation.
const INHIBITION: u64 = 9;

/// BRAVO over `phase-rw`. A lock that no thread holds.
#[derive(Debug)]
pub struct Bravo {
    below: PhaseRw,
    /// Open while there is a bias.
    door: SideDoor,
    /// When a bias is possible again, on [`clock::now`].
    inhibited_until: AtomicU64,
}

impl Bravo {
    const_new! {
        /// A lock that no thread holds.
        pub fn new() -> Self {
            Self {
                below: PhaseRw::new(),
                door: SideDoor::new(false),
                inhibited_until: AtomicU64::new(0),
            }
        }
    }

    /// What readers of this lock write into their slots.
    #[inline]
    fn mark(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Acquires the lock by the table, if there is a bias.
    #[inline]
    fn try_pass(&self) -> bool {
        if !self.door.looks_open() {
            return false;
        }
        let (slot, mark) = (table::slot(self.mark()), self.mark());
        // Relaxed: a hint. On failure too: then the reader takes the lock below instead.
        let free = slot.load(Ordering::Relaxed) == 0;
        // SeqCst: partner of the writer's shutting of the door, see `SideDoor::admits`.
        let (set, failed) = (Ordering::SeqCst, Ordering::Relaxed);
        if !free || slot.compare_exchange(0, mark, set, failed).is_err() {
            return false;
        }
        if self.door.admits() {
            return true;
        }
        self.leave();
        false
    }

    /// Ends a hold, or an attempt. It has a mark in the table, or else a hold on the inner lock.
    #[inline]
    fn leave(&self) {
        let (slot, mark) = (table::slot(self.mark()), self.mark());
        // Acquire: partner of the SeqCst below. A thread that has cleared this thread's mark passes
        // on its own writes. This matters only with four threads, which is more than a model can
        // have.
        let marked = slot.load(Ordering::Acquire) == mark;
        // SeqCst: partner of the load in `is_clear`, to which it releases, and of the writer's
        // read, see `SideDoor::left`. Acquire on failure: partner of this operation in the thread
        // that has cleared the mark.
        let (done, failed) = (order!(SeqCst, "bravo-leave"), Ordering::Acquire);
        if marked && slot.compare_exchange(mark, 0, done, failed).is_ok() {
            self.door.left();
        } else {
            // SAFETY: a thread releases for reading only what it has acquired, and its hold is a
            // mark in this slot or a hold on the lock below. The mark was not there or has been
            // taken by a reader that shares the slot, whose own hold is on the lock below: so that
            // lock has one hold for this release.
            unsafe { RawRwLock::release_read(&self.below) };
        }
    }

    /// Restores the bias if enough time has passed. The caller holds the inner lock for reading.
    #[inline]
    fn bias(&self) {
        // Relaxed: written under the lock below.
        let until = self.inhibited_until.load(Ordering::Relaxed);
        if !self.door.looks_open() && clock::now().wrapping_sub(until).cast_signed() >= 0 {
            self.door.open();
        }
    }

    /// Whether there is no mark of this lock in a slot.
    fn is_clear(&self, slot: &AtomicUsize) -> bool {
        // SeqCst: partner of the compare-and-swap in `try_pass`, see `SideDoor`; acquires the
        // writes released by `leave`.
        slot.load(order!(SeqCst, "bravo-scan")) != self.mark()
    }

    /// Waits for all readers that have marks in the table. The caller holds the inner lock for
    /// writing.
    #[cold]
    fn revoke(&self) {
        let start = clock::now();
        self.door.shut();
        for slot in table::slots() {
            self.door.wait_until(|| self.is_clear(slot));
        }
        let now = clock::now();
        let until = now.wrapping_add(now.wrapping_sub(start).wrapping_mul(INHIBITION));
        self.inhibited_until.store(until, Ordering::Relaxed); // Relaxed: as in `bias`
    }

    /// The same if there are none.
    #[cold]
    fn try_revoke(&self) -> bool {
        self.door.shut();
        let alone = table::slots().iter().all(|slot| self.is_clear(slot));
        if !alone {
            self.door.open();
        }
        alone
    }
}

impl Drop for Bravo {
    /// Removes the marks of readers that never released the lock. Otherwise the next lock at its
    /// address would wait for them.
    fn drop(&mut self) {
        if self.door.looks_open() {
            for slot in table::slots() {
                // Relaxed, both: no thread uses the lock any more.
                let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
                _ = slot.compare_exchange(self.mark(), 0, done, failed);
            }
        }
    }
}

impl Default for Bravo {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: writers hold the lock below, and have shut the way by the table and seen each reader that
// took it leave; see the page for why a reader that is not seen is turned away.
unsafe impl RawRwLock for Bravo {
    const INFO: LockInfo = LockInfo {
        name: "bravo",
        summary: "readers mark a slot of a table past phase-rw; a writer looks through the table",
        source: "Dice & Kogan, USENIX ATC 2019",
        order: Order::Barging,
        blocks: true,
    };

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn try_acquire_read(&self) -> bool {
        if self.try_pass() {
            return true;
        }
        let acquired = self.below.try_acquire_read();
        if acquired {
            self.bias();
        }
        acquired
    }

    #[inline]
    fn acquire_read(&self) {
        if !self.try_pass() {
            self.below.acquire_read();
            self.bias();
        }
    }

    #[inline]
    unsafe fn release_read(&self) {
        self.leave();
    }

    #[inline]
    fn try_acquire_write(&self) -> bool {
        if !self.below.try_acquire_write() {
            return false;
        }
        let alone = !self.door.looks_open() || self.try_revoke();
        if !alone {
            // SAFETY: `try_acquire_write` on the lock below has returned true, in this thread.
            unsafe { RawRwLock::release_write(&self.below) };
        }
        alone
    }

    #[inline]
    fn acquire_write(&self) {
        self.below.acquire_write();
        if self.door.looks_open() {
            self.revoke();
        }
    }

    #[inline]
    unsafe fn release_write(&self) {
        // SAFETY: a writer's hold on this lock consists of one on the lock below, which
        // `acquire_write` or `try_acquire_write` has left to it, and the caller has this lock for
        // writing (contract of `RawRwLock::release_write`).
        unsafe { RawRwLock::release_write(&self.below) };
    }
}
