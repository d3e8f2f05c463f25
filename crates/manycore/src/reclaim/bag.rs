//! Garbage, and the bags and stacks of bags in which it waits.
//!
//! A bag belongs to one thread at a time: first to the thread that fills it, then to the thread
//! that takes the closed bag off a stack. Its fields are plain memory. The stack's head passes them
//! from one thread to the next.
//!
//! Copies of [`rlu`](crate::rlu) and versions of [`mvrlu`](crate::mvrlu) do not wait in bags. Their
//! own thread gives them back to the pool, or to the segment of the log, from which they came. In a
//! bag each would need an entry of 16 bytes; now a copy needs 8, and a version none.

use alloc::boxed::Box;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

/// The number of objects for which a bag has room: with its header the bag takes 1 KiB. A thread
/// may fill several bags before it scans for expired ones. A thread that retires little needs
/// little memory.
pub(super) const CAPACITY: usize = 61;

/// The bytes for which a bag itself counts, without its objects.
pub const BAG_BYTES: usize = size_of::<Bag>();

/// An object that no thread can find any more, and its destructor. One of the domain's nodes has no
/// destructor here.
#[derive(Clone, Copy)]
pub(super) struct Garbage {
    pub object: *mut (),
    pub destroy: Option<unsafe fn(*mut ())>,
}

/// Objects that are destroyed together.
pub(super) struct Bag {
    next: *mut Bag,
    /// The epoch in which the bag was closed. It is in a cell, so that the model checker sees the
    /// bag's owner.
    epoch: UnsafeCell<usize>,
    /// What it counts for with its objects.
    pub bytes: usize,
    /// The same without the newest.
    bytes_before: usize,
    /// The weight of each object when it is destroyed: the sum of the weights limits the work.
    bytes_each: usize,
    length: usize,
    garbage: [MaybeUninit<Garbage>; CAPACITY],
}

impl Bag {
    pub fn new() -> Box<Self> {
        let mut bag = Box::<Self>::new_uninit();
        let at = bag.as_mut_ptr();
        // SAFETY: writes each field except the places of the garbage, which need not be
        // initialised.
        unsafe {
            (&raw mut (*at).next).write(null_mut());
            (&raw mut (*at).epoch).write(UnsafeCell::new(0));
            (&raw mut (*at).bytes).write(0);
            (&raw mut (*at).bytes_before).write(0);
            (&raw mut (*at).bytes_each).write(0);
            (&raw mut (*at).length).write(0);
            bag.assume_init()
        }
    }

    /// Opens the bag, so that it can be filled. Returns the bytes for which the bag itself counts
    /// while it has any object.
    pub fn open(&mut self) -> usize {
        debug_assert!(self.length == 0, "a bag that is not empty is filled anew");
        (self.bytes, self.bytes_before) = (size_of::<Self>(), size_of::<Self>());
        size_of::<Self>()
    }

    /// Closes the bag, which is not empty: nothing is added any more.
    pub fn close(&mut self, epoch: usize) {
        self.bytes_each = self.bytes_before / (self.length - 1).max(1);
        // SAFETY: a bag is never shared by reference: threads pass it on as a whole, by a `Box` or
        // a stack, so only the caller has it. (The cell shows that to the model checker.)
        self.epoch.with_mut(|place| unsafe { *place = epoch });
    }

    pub fn epoch(&self) -> usize {
        // SAFETY: a bag is never shared by reference: threads pass it on as a whole, by a `Box` or
        // a stack, so only the caller has it. (The cell shows that to the model checker.)
        self.epoch.with(|place| unsafe { *place })
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Adds an object. The bag has room.
    #[inline]
    pub fn push(&mut self, garbage: Garbage, bytes: usize) {
        self.garbage[self.length] = MaybeUninit::new(garbage);
        self.length += 1;
        self.bytes_before = self.bytes;
        self.bytes += bytes;
    }

    /// Takes the newest object out of a closed bag, to be destroyed, with its weight. The bag is
    /// not empty.
    pub fn pop(&mut self) -> (Garbage, usize) {
        self.length -= 1;
        let left = self.bytes_each * self.length;
        let bytes = self.bytes - left;
        self.bytes = left;
        // SAFETY: `push` has written the places below the length; this one is below the old length,
        // and no longer counts.
        (unsafe { self.garbage[self.length].assume_init() }, bytes)
    }
}

/// Closed bags that any thread may take: all of them at a time.
pub(super) struct GarbageStack(AtomicPtr<Bag>);

impl GarbageStack {
    pub fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Whether there is nothing to take, or was a moment ago.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null() // Relaxed: a hint
    }

    pub fn push(&self, bag: Box<Bag>) {
        let bag = Box::into_raw(bag);
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            // SAFETY: the bag comes from `Box::into_raw`, and no other thread finds it before the
            // compare-and-swap below.
            unsafe { (*bag).next = head };
            // Release: partner of the Acquire in `take`.
            let release = order!(Release, "reclaim-stack-push");
            match self.0.compare_exchange_weak(head, bag, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Takes all bags. Those that the caller leaves are put back in the end.
    pub fn take(&self) -> Taken<'_> {
        // Acquire: partner of the Release in `push`.
        let first = self.0.swap(null_mut(), order!(Acquire, "reclaim-stack-take"));
        Taken { stack: self, first }
    }
}

/// Bags that were on a stack. They return to it if the caller does not take them.
pub(super) struct Taken<'a> {
    stack: &'a GarbageStack,
    first: *mut Bag,
}

impl Iterator for Taken<'_> {
    type Item = Box<Bag>;

    fn next(&mut self) -> Option<Box<Bag>> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: `take` has swapped the whole list out, whose bags come from `Box::into_raw` in
        // `push`; each is visited once.
        let bag = unsafe { Box::from_raw(self.first) };
        self.first = bag.next;
        Some(bag)
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        while let Some(bag) = self.next() {
            self.stack.push(bag);
        }
    }
}
