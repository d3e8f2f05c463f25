//! The data that descriptors of one open description share: the route, and the description's known
//! properties.

use core::mem::MaybeUninit;

use manycore::order;
use manycore::sync::atomic::{AtomicU32, Ordering};
use manycore::sync::cell::UnsafeCell;

/// A slot in the memory that a table is given. If all bytes are zero, it is free and was never
/// used.
#[derive(Debug)]
#[repr(C)]
pub struct Slot<L> {
    /// The number of entries and calls in flight that refer to it; 0 while it is free.
    references: AtomicU32,
    /// The free slot after this one, plus one.
    pub(crate) next: AtomicU32,
    /// Bits that the table's user defines.
    pub(crate) traits: AtomicU32,
    route: UnsafeCell<MaybeUninit<L>>,
}

// SAFETY: the thread that has taken the slot off the free list writes the route, before `publish`
// allows references by others; these copy it (`L: Send + Sync`).
unsafe impl<L: Send + Sync> Sync for Slot<L> {}

/// A reference to a slot, to be returned by [`Table::leave`](super::Table::leave). It has no
/// destructor, because a cancelled thread may leave a call without returning from it.
#[derive(Debug)]
#[must_use = "the route stays open until it is given back"]
pub struct Held(pub(crate) u32);

impl Held {
    /// The slot's number, for places that cannot hold a value with a destructor.
    pub fn into_number(self) -> u32 {
        self.0
    }

    /// The reference of that number: once, for each [`into_number`](Self::into_number).
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl<L: Copy> Slot<L> {
    /// A free one.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            references: AtomicU32::new(0),
            next: AtomicU32::new(0),
            traits: AtomicU32::new(0),
            route: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// A free one.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            references: AtomicU32::new(0),
            next: AtomicU32::new(0),
            traits: AtomicU32::new(0),
            route: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Puts a route in, with one reference: the caller's.
    ///
    /// # Safety
    ///
    /// The caller has taken the slot off the free list.
    pub(crate) unsafe fn publish(&self, route: L, traits: u32) {
        // SAFETY: the caller has taken the slot off the free list (contract of this function). No
        // other thread touches a slot that is not on the list and has no references.
        self.route.with_mut(|place| unsafe { (*place).write(route) });
        // Relaxed: published with the route, below.
        self.traits.store(traits, Ordering::Relaxed);
        // Release: partner of the Acquire in `join`: a thread that gets a reference finds the
        // route.
        self.references.store(1, order!(Release, "slot-publish"));
    }

    /// Takes a reference, unless the slot is free.
    pub(crate) fn join(&self) -> bool {
        // Acquire, here and where the exchange fails: partner of the AcqRel in `leave`. A thread
        // that finds the slot free also sees that the entry has changed, so it does not retry for
        // ever.
        let mut references = self.references.load(order!(Acquire, "slot-free"));
        while references != 0 {
            // Acquire: partner of the Release in `publish`, and through it of earlier writes: the
            // thread sees that the entry that referred to this slot's earlier route has changed.
            match self.references.compare_exchange_weak(
                references,
                references + 1,
                order!(Acquire, "slot-join"),
                order!(Acquire, "slot-free"),
            ) {
                Ok(_) => return true,
                Err(now) => references = now,
            }
        }
        false
    }

    /// A copy of the route.
    ///
    /// # Safety
    ///
    /// The caller has a reference.
    pub(crate) unsafe fn route(&self) -> &L {
        // SAFETY: `publish` has written the route before there was a reference. The caller has one
        // (contract of this function), and the route is not written again before that is dropped.
        self.route.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// Drops a reference. If it was the last one, returns the route, and the slot belongs to the
    /// caller.
    ///
    /// # Safety
    ///
    /// The caller owns a reference.
    pub(crate) unsafe fn leave(&self) -> Option<L> {
        // AcqRel: each drop of a reference is partner of the last one: Release for that, so that
        // all uses come before; Acquire of all others.
        if self.references.fetch_sub(1, order!(AcqRel, "slot-leave")) != 1 {
            return None;
        }
        // SAFETY: the last reference is gone, so no other thread reads the route, nor can get a
        // reference before `publish`.
        Some(self.route.with_mut(|place| unsafe { (*place).assume_init_read() }))
    }

    /// Drops all references; returns the route if there were any.
    ///
    /// # Safety
    ///
    /// No other thread has the table: this is the child of a fork.
    pub(crate) unsafe fn reset(&self) -> Option<L> {
        // Relaxed: there is one thread.
        let references = self.references.swap(0, Ordering::Relaxed);
        // SAFETY: there were references, so `publish` has written the route; no other thread has
        // the table (contract of this function).
        (references != 0)
            .then(|| self.route.with_mut(|place| unsafe { (*place).assume_init_read() }))
    }
}

impl<L: Copy> Default for Slot<L> {
    fn default() -> Self {
        Self::new()
    }
}
