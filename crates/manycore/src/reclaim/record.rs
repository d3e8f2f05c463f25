//! What a domain knows of each thread.

use super::bag::{Bag, GarbageStack};
use super::nodes::Pool;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{cell, clock, order, store_and_fence};
use crate::thread_registry::ThreadSlot;

use alloc::boxed::Box;
use core::cell::{Cell, UnsafeCell};
use core::ptr::null_mut;

/// Set in a record's state while its thread is inside a section. The other bits are the epoch in
/// which the thread entered.
pub(super) const INSIDE: usize = 1;
/// The difference between one epoch and the next: the lowest bit is [`INSIDE`].
pub(super) const STEP: usize = 2;

/// How many stacks a record has: one more than there are epochs whose garbage may have to wait.
pub(super) const STACKS: usize = 4;

/// A thread's place in a domain. It outlives the thread, and a later thread takes it over.
pub(super) type Slot = ThreadSlot<Record>;

/// What others may read of it.
#[repr(C)] // The state comes first: see `ThreadRegistry::scan`.
pub(super) struct Record {
    /// 0, or the epoch in which the record's thread entered, with [`INSIDE`].
    state: AtomicUsize,
    /// The bytes that the record's threads have retired so far, and the bytes that they have freed,
    /// whichever thread retired those. Both wrap. The thread that has the record writes them.
    retired: AtomicUsize,
    freed: AtomicUsize,
    /// Closed bags, by the epoch in which they were closed. Epochs use the stacks in turn, so that
    /// a stack may also have bags of earlier epochs.
    stacks: [GarbageStack; STACKS],
    /// Bags with only expired objects. Their thread destroys the objects little by little.
    pub expired: GarbageStack,
    /// The thread's memory for nodes.
    pub pool: UnsafeCell<Pool>,
    /// The thread's private data, which passes from one thread to the next.
    own: cell::UnsafeCell<Own>,
    /// Whether there is garbage in that, and no thread has the record: a hint.
    parked: AtomicBool,
}

/// What a thread has of a domain for itself.
pub(super) struct Own {
    /// The bag that is being filled; null if there is none.
    pub bag: Cell<*mut Bag>,
    /// The bag whose objects are being destroyed, all of them expired; null if there is none.
    pub emptying: Cell<*mut Bag>,
    /// An empty one; null if there is none.
    pub spare: Cell<*mut Bag>,
    /// The number of bytes that may be retired before this thread scans for expired objects.
    pub bag_bytes_max: Cell<usize>,
    /// The objects and bytes retired since this thread last scanned for expired ones, and the time
    /// of that scan, in ticks.
    pub batch: Cell<usize>,
    pub batch_bytes: Cell<usize>,
    pub looked: Cell<u64>,
    /// The objects retired since this thread last destroyed some. If they are as many as it
    /// destroys together, it scans.
    pub owed: Cell<usize>,
    /// Whether this thread is to look what can be freed.
    pub is_due: Cell<bool>,
    /// The thread's sections since it last checked whether the next epoch can begin.
    pub sections: Cell<u32>,
    /// The epoch when it last looked.
    pub seen: Cell<usize>,
}

impl Own {
    fn new(bag_bytes_max: usize, seen: usize) -> Self {
        Self {
            bag: Cell::new(null_mut()),
            emptying: Cell::new(null_mut()),
            spare: Cell::new(null_mut()),
            bag_bytes_max: Cell::new(bag_bytes_max),
            batch: Cell::new(0),
            batch_bytes: Cell::new(0),
            looked: Cell::new(clock::now()),
            owed: Cell::new(0),
            is_due: Cell::new(false),
            sections: Cell::new(0),
            seen: Cell::new(seen),
        }
    }

    fn has_garbage(&self) -> bool {
        !self.bag.get().is_null() || !self.emptying.get().is_null()
    }
}

impl Record {
    /// Makes a record that the caller owns.
    pub fn new(bag_bytes_max: usize, epoch: usize) -> Self {
        Self {
            state: AtomicUsize::new(0),
            retired: AtomicUsize::new(0),
            freed: AtomicUsize::new(0),
            stacks: core::array::from_fn(|_| GarbageStack::new()),
            expired: GarbageStack::new(),
            pool: UnsafeCell::new(Pool::new()),
            own: cell::UnsafeCell::new(Own::new(bag_bytes_max, epoch)),
            parked: AtomicBool::new(false),
        }
    }

    /// The caller has claimed the record. This shows the model checker that the record's contents
    /// belong to another thread now.
    #[inline]
    pub fn take_over(&self) {
        self.own.with_mut(|_| ());
    }

    /// What its thread has.
    ///
    /// # Safety
    ///
    /// The caller has the record, and does not use the reference after that.
    #[inline]
    pub unsafe fn own(&self) -> &Own {
        // SAFETY: only the thread that has the record, which is the caller (contract of this
        // function), accesses `own`.
        self.own.with(|own| unsafe { &*own })
    }

    /// Closes the bag that is being filled, and puts it where other threads find it.
    pub fn close_bag(&self, own: &Own, epoch: usize) {
        let bag = own.bag.replace(null_mut());
        if !bag.is_null() {
            // SAFETY: a bag in `Own` comes from `Box::into_raw`, and the line above has taken it
            // out.
            self.put(unsafe { Box::from_raw(bag) }, epoch);
        }
    }

    /// Announces that the thread is inside, since this epoch; with a full fence afterwards, or
    /// without.
    #[inline]
    pub fn enter(&self, epoch: usize, with_fence: bool) {
        if with_fence {
            store_and_fence!(self.state, epoch | INSIDE, "reclaim-reader-fence");
        } else {
            // Release: partner of the Acquire in `state`, for the previous section, whose end the
            // advancing thread may not have seen.
            self.state.store(epoch | INSIDE, Ordering::Release);
        }
    }

    /// Says that it is not.
    #[inline]
    pub fn leave(&self) {
        // Release: partner of the Acquire in `state`: accesses in the section come before the
        // protected objects are freed.
        self.state.store(0, order!(Release, "reclaim-leave"));
    }

    /// The epoch since which the record's thread is inside, see [`enter`](Self::enter); 0 if it is
    /// not.
    pub fn state(&self) -> usize {
        // Acquire: partner of the Releases in `enter` and `leave`.
        self.state.load(order!(Acquire, "reclaim-state"))
    }

    /// Counts these bytes as retired, by the thread that has the record.
    #[inline]
    pub fn count_retired(&self, bytes: usize) {
        // Relaxed, both: a statistic, which one thread writes.
        let before = self.retired.load(Ordering::Relaxed);
        self.retired.store(before.wrapping_add(bytes), Ordering::Relaxed);
    }

    /// Counts these bytes as freed, by the thread that has the record.
    pub fn count_freed(&self, bytes: usize) {
        // Relaxed, both: a statistic, which one thread writes.
        let before = self.freed.load(Ordering::Relaxed);
        self.freed.store(before.wrapping_add(bytes), Ordering::Relaxed);
    }

    /// What was retired here less what was freed here.
    pub fn balance(&self) -> usize {
        // Relaxed, both: a statistic.
        let retired = self.retired.load(Ordering::Relaxed);
        retired.wrapping_sub(self.freed.load(Ordering::Relaxed))
    }

    /// Closes a bag in this epoch, and puts it where all threads can find it.
    pub fn put(&self, mut bag: Box<Bag>, epoch: usize) {
        bag.close(epoch);
        self.stacks[epoch / STEP % STACKS].push(bag);
    }

    /// The stacks, by epoch.
    pub fn stacks(&self) -> &[GarbageStack] {
        &self.stacks
    }
}

impl Slot {
    /// The thread does not need the record any more. Its garbage stays for the record's next
    /// thread, or for a thread that searches for it.
    #[inline]
    pub fn leave_to_next(&self) {
        self.take_over();
        // The model checker has enough work without a hint.
        if !cfg!(loom) {
            // SAFETY: the caller has claimed the record, and gives it back below.
            let parked = unsafe { self.own() }.has_garbage();
            self.parked.store(parked, Ordering::Relaxed); // Relaxed: a hint
        }
        self.give_back(Box::new(()));
    }

    /// If no thread has the record, and its last thread has left garbage: puts the garbage where
    /// other threads find it.
    pub fn close_parked(&self, epoch: impl FnOnce() -> usize) {
        // Relaxed: a hint.
        if (cfg!(loom) || self.parked.load(Ordering::Relaxed)) && self.take().is_some() {
            self.take_over();
            // SAFETY: `take` has succeeded above, and `leave_to_next` below ends the use.
            let own = unsafe { self.own() };
            self.close_bag(own, epoch());
            let emptying = own.emptying.replace(null_mut());
            if !emptying.is_null() {
                // SAFETY: a bag in `Own` comes from `Box::into_raw`, and the line above has taken
                // it out.
                self.expired.push(unsafe { Box::from_raw(emptying) });
            }
            self.leave_to_next();
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: the domain is being dropped, and no other thread has the record.
        let own = unsafe { self.own() };
        debug_assert!(!own.has_garbage(), "taken by the domain's end");
        let spare = own.spare.get();
        if !spare.is_null() {
            // SAFETY: a spare bag comes from `Box::into_raw`, is empty, and is in no other place.
            drop(unsafe { Box::from_raw(spare) });
        }
    }
}
