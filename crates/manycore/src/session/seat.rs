//! The threads that take part in a domain: what others may look at of each, and what each has for itself.
//!
//! A thread that comes takes the seat of one that has gone, with what is in it, or adds one. Seats stay until the domain's end: whoever
//! has found one may go on using it.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::null_mut;

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::sync::{hint, order, thread};

/// A thread's seat, with its record, which others may look at.
pub(crate) struct Seat<R, L> {
    record: R,
    /// The number of the thread: for reports, and to find out that a thread would wait for itself.
    pub thread: AtomicU32,
    taken: AtomicBool,
    /// What the thread has for itself, while no thread has the seat.
    local: AtomicPtr<L>,
    /// The seat that was added before.
    next: *mut Self,
}

// SAFETY: the link is written before the seat is shared, and what a thread has for itself goes from one thread to the next.
unsafe impl<R: Sync, L: Send> Sync for Seat<R, L> {}

impl<R, L> Deref for Seat<R, L> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.record
    }
}

impl<R, L> Seat<R, L> {
    /// Takes a seat that no thread has.
    fn take(&self) -> Option<Box<L>> {
        // Relaxed: a hint, and on failure.
        let taken = self.taken.load(Ordering::Relaxed);
        // Acquire: partner of the Release in `give_back`.
        let done = Ordering::Acquire;
        if taken || self.taken.compare_exchange(false, true, done, Ordering::Relaxed).is_err() {
            return None;
        }
        let local = self.local.swap(null_mut(), Ordering::Relaxed); // Relaxed: the seat is this thread's
        // SAFETY: the compare-and-swap has taken a seat that was not taken: either `give_back` has
        // left a `Box::into_raw` there, and this thread is the only one to take that out.
        Some(unsafe { Box::from_raw(local) })
    }

    /// Lets others get on after a conflict, the longer the more attempts there were.
    pub fn back_off(&self, attempts: u32) {
        // Whoever has locked the object may have been preempted.
        if attempts > 8 {
            hint::yield_now();
        }
        let unit = if cfg!(loom) { 0 } else { 64 };
        // Threads that began together do not go on doing so.
        let spread = u64::from(self.thread.load(Ordering::Relaxed) % 8); // Relaxed: a number
        hint::delay((unit << attempts.min(8)) + 16 * spread);
    }

    /// The thread does not take part any more.
    pub fn give_back(&self, local: Box<L>) {
        self.local.store(Box::into_raw(local), Ordering::Relaxed); // Relaxed: released below
        // Release: partner of the Acquire in `take`.
        self.taken.store(false, order!(Release, "seat-give-back"));
    }
}

impl<R, L> Drop for Seat<R, L> {
    fn drop(&mut self) {
        let local = self.local.load(Ordering::Relaxed); // Relaxed: nobody else is left
        if !local.is_null() {
            // SAFETY: null says that a thread has taken it out; what is there `give_back` has left
            // by `Box::into_raw`, and it is dropped once.
            drop(unsafe { Box::from_raw(local) });
        }
    }
}

/// A domain's seats.
pub(crate) struct Seats<R, L> {
    /// The one that was added last.
    last: AtomicPtr<Seat<R, L>>,
}

impl<R, L> Seats<R, L> {
    pub fn new() -> Self {
        Self { last: AtomicPtr::new(null_mut()) }
    }

    /// One for the calling thread: one that another has left, or a new one.
    pub fn take(&self, new: impl FnOnce() -> (R, L)) -> (&Seat<R, L>, Box<L>) {
        let left = self.iter().find_map(|seat| Some((seat, seat.take()?)));
        let (seat, local) = left.unwrap_or_else(|| self.add(new()));
        seat.thread.store(thread::id(), Ordering::Relaxed); // Relaxed: a number
        (seat, local)
    }

    fn add(&self, (record, local): (R, L)) -> (&Seat<R, L>, Box<L>) {
        let seat = Box::into_raw(Box::new(Seat {
            record,
            thread: AtomicU32::new(0),
            taken: AtomicBool::new(true),
            local: AtomicPtr::new(null_mut()),
            next: null_mut(),
        }));
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            // SAFETY: the seat comes from `Box::into_raw`, and no other thread finds it before the
            // compare-and-swap below.
            unsafe { (*seat).next = last };
            // Release: partner of the Acquire in `iter`.
            let release = order!(Release, "seats-add");
            match self.last.compare_exchange(last, seat, release, Ordering::Relaxed) {
                // SAFETY: seats are freed with `Seats` only, which the result borrows.
                Ok(_) => return (unsafe { &*seat }, Box::new(local)),
                Err(changed) => last = changed,
            }
        }
    }

    /// As [`iter`](Self::iter), for who looks at the first line of each record, which its thread writes all the time: it is asked for
    /// some seats ahead, so that hundreds of such lines are not fetched one after the other.
    pub fn scan(&self) -> impl Iterator<Item = &Seat<R, L>> {
        const AHEAD: usize = 8;
        let seats = self.iter();
        let mut ahead = seats.clone().map(|seat| hint::prefetch(&raw const seat.record));
        (&mut ahead).take(AHEAD).for_each(drop);
        seats.inspect(move |_| _ = ahead.next())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Seat<R, L>> + Clone {
        // Acquire: partner of the Release in `add`.
        let last = self.last.load(order!(Acquire, "seats-iter"));
        // SAFETY: null, or a seat from `add`; those are freed with `Seats` only, which the result
        // borrows.
        core::iter::successors(unsafe { last.as_ref() }, |seat| unsafe { seat.next.as_ref() })
    }
}

impl<R, L> Drop for Seats<R, L> {
    fn drop(&mut self) {
        let mut seat = self.last.load(Ordering::Relaxed); // Relaxed: nobody else is left
        while !seat.is_null() {
            // SAFETY: `add` has made it by `Box::into_raw`, and each is in the list once; what
            // borrowed from `self` is gone.
            let owned = unsafe { Box::from_raw(seat) };
            seat = owned.next;
        }
    }
}
