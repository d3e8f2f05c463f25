//! The participating threads: the data of each that others may read, and each one's private data.
//!
//! A new thread takes the slot of one that has gone, with its contents, or adds a slot. Slots stay
//! until the end of the registry, so a thread that has found one may go on using it. There is no
//! list of threads to lock.
//!
//! The records of [flat combining](crate::delegate::FlatCombining) are not in such a registry: a
//! lock has them in itself, so that it is a constant and allocates nothing; and its combiner walks
//! only those that were of use lately, since each that it reads is a line of another CPU's.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::null_mut;

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::sync::{hint, order, thread};

/// Keeps a handle in the thread that registered it. The compiler names this type to a programmer
/// who sends the handle elsewhere: the name gives the remedy.
#[derive(Debug, Default)]
pub(crate) struct EachThreadRegistersItsOwn(PhantomData<*mut ()>);

/// A thread's slot, with its record, which others may read. It is on lines of its own, and the
/// record comes first: see
/// [`ThreadRegistry::scan`].
#[repr(C, align(128))]
pub(crate) struct ThreadSlot<R, L = ()> {
    record: R,
    /// The number of the thread that has it, or had it last: for reports, and to notice that a
    /// thread would wait for itself.
    pub thread: AtomicU32,
    taken: AtomicBool,
    /// The thread's private data, while no thread has the slot.
    local: AtomicPtr<L>,
    /// The slot that was added before.
    next: *mut Self,
}

// SAFETY: the link is written before the slot is shared, and a thread's private data pass from one
// thread to the next.
unsafe impl<R: Sync, L: Send> Sync for ThreadSlot<R, L> {}

impl<R, L> Deref for ThreadSlot<R, L> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.record
    }
}

impl<R, L> ThreadSlot<R, L> {
    /// Takes a slot that no thread has.
    pub fn take(&self) -> Option<Box<L>> {
        // Acquire: partner of the Release in `give_back`. The new thread's writes in the record
        // come after those of the thread before, and its counts continue from there. Relaxed on
        // failure: nothing is followed.
        let done = order!(Acquire, "slot-claim");
        if self.is_taken()
            || self.taken.compare_exchange(false, true, done, Ordering::Relaxed).is_err()
        {
            return None;
        }
        // Relaxed, here and below: the slot is this thread's.
        let local = self.local.load(Ordering::Relaxed);
        self.local.store(null_mut(), Ordering::Relaxed);
        self.thread.store(thread::id(), Ordering::Relaxed); // Relaxed: a number
        // SAFETY: the compare-and-swap has taken a free slot: `give_back` has left a
        // `Box::into_raw` there, and only this thread takes that out.
        Some(unsafe { Box::from_raw(local) })
    }

    /// Whether a thread has it, or had a moment ago.
    pub fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed) // Relaxed: a hint
    }

    /// The number of the thread that has the slot, or had it last.
    pub fn thread(&self) -> u32 {
        self.thread.load(Ordering::Relaxed) // Relaxed: a number
    }

    /// Lets others get on after a conflict, the longer the more attempts there were.
    pub fn back_off(&self, attempts: u32) {
        // A thread that has locked the object may have been preempted.
        if attempts > 8 {
            hint::yield_now();
        }
        let unit = if cfg!(loom) { 0 } else { 64 };
        // Threads that began together do not go on doing so.
        let spread = u64::from(self.thread() % 8);
        hint::delay((unit << attempts.min(8)) + 16 * spread);
    }

    /// The thread does not take part any more.
    pub fn give_back(&self, local: Box<L>) {
        self.local.store(Box::into_raw(local), Ordering::Relaxed); // Relaxed: released below
        // Release: partner of the Acquire in `take`.
        self.taken.store(false, order!(Release, "slot-give-back"));
    }
}

impl<R, L> Drop for ThreadSlot<R, L> {
    fn drop(&mut self) {
        let local = self.local.load(Ordering::Relaxed); // Relaxed: no other thread is left
        if !local.is_null() {
            // SAFETY: null means that a thread has taken it out; otherwise `give_back` has left it
            // there by `Box::into_raw`, and it is dropped once.
            drop(unsafe { Box::from_raw(local) });
        }
    }
}

/// The slots.
pub(crate) struct ThreadRegistry<R, L = ()> {
    /// The one that was added last.
    last: AtomicPtr<ThreadSlot<R, L>>,
}

impl<R, L> ThreadRegistry<R, L> {
    pub fn new() -> Self {
        Self { last: AtomicPtr::new(null_mut()) }
    }

    /// Takes a slot for the calling thread: one that another thread has left, or a new one.
    pub fn take(&self, new: impl FnOnce() -> (R, L)) -> (&ThreadSlot<R, L>, Box<L>) {
        let left = self.iter().find_map(|slot| Some((slot, slot.take()?)));
        left.unwrap_or_else(|| self.add(new()))
    }

    fn add(&self, (record, local): (R, L)) -> (&ThreadSlot<R, L>, Box<L>) {
        let slot = Box::into_raw(Box::new(ThreadSlot {
            record,
            thread: AtomicU32::new(thread::id()),
            taken: AtomicBool::new(true),
            local: AtomicPtr::new(null_mut()),
            next: null_mut(),
        }));
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            // SAFETY: the slot comes from `Box::into_raw`, and no other thread finds it before the
            // compare-and-swap below.
            unsafe { (*slot).next = last };
            // Release: partner of the Acquire in `iter`.
            let release = order!(Release, "slots-add");
            match self.last.compare_exchange(last, slot, release, Ordering::Relaxed) {
                // SAFETY: slots are freed with `ThreadRegistry` only, which the result borrows.
                Ok(_) => return (unsafe { &*slot }, Box::new(local)),
                Err(changed) => last = changed,
            }
        }
    }

    /// As [`iter`](Self::iter), for a thread that reads the first line of each record, which its
    /// thread writes all the time: it is asked for some slots ahead, so that hundreds of such lines
    /// are not fetched one after the other.
    pub fn scan(&self) -> impl Iterator<Item = &ThreadSlot<R, L>> {
        const AHEAD: usize = 8;
        let slots = self.iter();
        let mut ahead = slots.clone().map(|slot| hint::prefetch(&raw const slot.record));
        (&mut ahead).take(AHEAD).for_each(drop);
        slots.inspect(move |_| _ = ahead.next())
    }

    pub fn iter(&self) -> impl Iterator<Item = &ThreadSlot<R, L>> + Clone {
        // Acquire: partner of the Release in `add`.
        let last = self.last.load(order!(Acquire, "slots-iter"));
        // SAFETY: null, or a slot from `add`; those are freed with `ThreadRegistry` only, which the
        // result borrows.
        core::iter::successors(unsafe { last.as_ref() }, |slot| unsafe { slot.next.as_ref() })
    }
}

impl<R, L> Drop for ThreadRegistry<R, L> {
    fn drop(&mut self) {
        let mut slot = self.last.load(Ordering::Relaxed); // Relaxed: no other thread is left
        while !slot.is_null() {
            // SAFETY: `add` has made it by `Box::into_raw`, and each is in the list once; all
            // borrows from `self` are gone.
            let owned = unsafe { Box::from_raw(slot) };
            slot = owned.next;
        }
    }
}
