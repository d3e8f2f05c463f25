//! The list of waiters: doubly linked through the waiters themselves, under a lock that survives a fork.
//!
//! # The lock
//!
//! The three states of [`lock::Futex`](crate::lock::Futex), and beside them the *generation* of the process, which a
//! fork increments in the child. In the child, the waiters on the list and whoever holds its lock do not exist, and
//! their stacks are memory for new threads. The child's first `lock` sees an older generation in the word: it takes
//! the lock whatever its state, and empties the list.
//!
//! # Memory order
//!
//! As for `lock::Futex`: whoever locks (Acquire) sees what was done before the word was unlocked (Release).

use super::Waiter;
use crate::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, futex, mortal, order, process};

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;
/// The lowest bits of the word are one of the states above, the others the generation.
const STATE_BITS: u32 = 2;
const STATE: u32 = (1 << STATE_BITS) - 1;

/// The word for a state in this process.
fn now(state: u32) -> u32 {
    (process::generation() << STATE_BITS) | state
}

#[derive(Debug)]
pub(super) struct List {
    word: AtomicU32,
    /// Written with the list locked, read without it by `looks_empty` only.
    head: AtomicPtr<Waiter>,
    tail: UnsafeCell<*const Waiter>,
}

// SAFETY: the tail is only touched with the list locked.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    const_new! {
        pub(super) fn new() -> Self {
            Self {
                word: AtomicU32::new(0),
                head: AtomicPtr::new(core::ptr::null_mut()),
                tail: UnsafeCell::new(core::ptr::null()),
            }
        }
    }

    /// Whether there is nobody to signal, as far as the caller has to know.
    #[inline]
    pub(super) fn looks_empty(&self) -> bool {
        // Relaxed: a signaller has to find those waiters only of which it can know. It changed what they wait for
        // under their mutex; a waiter that had looked before then has put itself on the list before it released the
        // mutex, so that happens before this load, which cannot read an older head. A waiter that looks later sees
        // the change and does not wait. And what the load returns is not followed: whoever reads it wants the lock.
        self.head.load(Ordering::Relaxed).is_null()
    }

    pub(super) fn lock(&self) -> Locked<'_> {
        let mut taken = now(HELD);
        // Relaxed: the compare-and-swap decides and orders.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let stale = word & !STATE != now(0);
            if !stale && word & STATE != FREE {
                word = self.wait(word);
                taken = now(CONTENDED); // as in `lock::Futex`: others may sleep on
                continue;
            }
            // Acquire: partner of the Release in `Locked::drop`.
            let acquire = order!(Acquire, "wait-lock-acquire");
            match self.word.compare_exchange(word, taken, acquire, Ordering::Relaxed) {
                Ok(_) => break Locked { list: self }.emptied_if(stale),
                Err(changed) => word = changed,
            }
        }
    }

    /// Sleeps while the word says that the lock is held and contended; returns what it says then.
    #[cold]
    fn wait(&self, word: u32) -> u32 {
        let contended = now(CONTENDED);
        // Relaxed, all three: nothing is acquired here.
        if word != contended {
            let marked =
                self.word.compare_exchange(word, contended, Ordering::Relaxed, Ordering::Relaxed);
            if let Err(changed) = marked {
                return changed;
            }
        }
        futex::wait(&self.word, contended, None);
        self.word.load(Ordering::Relaxed)
    }
}

/// The list while the caller holds its lock.
pub(super) struct Locked<'a> {
    list: &'a List,
}

impl<'a> Locked<'a> {
    fn emptied_if(self, stale: bool) -> Self {
        if stale {
            self.set_head(core::ptr::null());
            self.set_tail(core::ptr::null());
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head().is_null()
    }

    /// The waiters in order of arrival.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a Waiter> {
        // SAFETY: a waiter on the list is there at least until it has been taken off.
        core::iter::successors(unsafe { self.head().as_ref() }, |w| unsafe { next(w).as_ref() })
    }

    pub(super) fn push(&self, waiter: &Waiter) {
        let last = self.tail();
        set(&waiter.prev, last);
        set(&waiter.next, core::ptr::null());
        self.link(last, waiter);
        self.set_tail(waiter);
    }

    /// # Safety
    ///
    /// The waiter is on this list.
    pub(super) unsafe fn remove(&self, waiter: &Waiter) {
        // SAFETY: the list is locked, so the links are ours.
        let (prev, next) = unsafe { (waiter.prev.with(|p| *p), next(waiter)) };
        self.link(prev, next);
        // SAFETY: as in `iter`.
        match unsafe { next.as_ref() } {
            Some(next) => set(&next.prev, prev),
            None => self.set_tail(prev),
        }
    }

    /// Takes all waiters off the list that are to be `taken`; returns them, chained by `next`.
    pub(super) fn extract(&self, taken: impl Fn(&Waiter) -> bool) -> *const Waiter {
        let (mut first, mut last) = (core::ptr::null(), core::ptr::null::<Waiter>());
        let mut node = self.head();
        // SAFETY: as in `iter`.
        while let Some(waiter) = unsafe { node.as_ref() } {
            node = next(waiter);
            if !taken(waiter) {
                continue;
            }
            // SAFETY: found on the list.
            unsafe { self.remove(waiter) };
            set(&waiter.next, core::ptr::null());
            // SAFETY: taken before, so off the list, and not given back to its owner yet.
            match unsafe { last.as_ref() } {
                Some(last) => set(&last.next, waiter),
                None => first = waiter,
            }
            last = waiter;
        }
        first
    }

    /// Makes `to` what follows `from`, or the head if nothing comes before.
    fn link(&self, from: *const Waiter, to: *const Waiter) {
        // SAFETY: as in `iter`.
        match unsafe { from.as_ref() } {
            Some(from) => set(&from.next, to),
            None => self.set_head(to),
        }
    }

    fn head(&self) -> *const Waiter {
        self.list.head.load(Ordering::Relaxed) // Relaxed: the lock is held
    }

    fn set_head(&self, waiter: *const Waiter) {
        self.list.head.store(waiter.cast_mut(), Ordering::Relaxed); // Relaxed: see `looks_empty`
    }

    fn tail(&self) -> *const Waiter {
        // SAFETY: the lock is held.
        self.list.tail.with(|t| unsafe { *t })
    }

    fn set_tail(&self, waiter: *const Waiter) {
        // SAFETY: the lock is held.
        self.list.tail.with_mut(|t| unsafe { *t = waiter });
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let word = &self.list.word;
        let address = core::ptr::from_ref(word);
        // Release: partner of the Acquire in `lock`. After this the list may be gone.
        if word.swap(now(FREE), order!(Release, "wait-unlock-release")) & STATE == CONTENDED {
            futex::wake(address, 1);
        }
    }
}

/// What follows a waiter. The list is locked.
fn next(waiter: &Waiter) -> *const Waiter {
    // SAFETY: the list is locked, so nobody writes the link.
    waiter.next.with(|n| unsafe { *n })
}

/// Writes a link. The list is locked, or the waiter claimed.
fn set(link: &UnsafeCell<*const Waiter>, to: *const Waiter) {
    // SAFETY: the list is locked, or the waiter claimed, so nobody else touches the link.
    link.with_mut(|l| unsafe { *l = to });
}

mortal!(List { word, head, tail });
