//! A chain of waiters: doubly linked through the waiters themselves, under a lock of the chain's
//! owner.

use super::Waiter;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, mortal};

/// Head and tail. All zero is an empty chain.
#[derive(Debug)]
pub(in crate::lock) struct Chain {
    /// Written with the chain locked. Only `looks_empty` reads it without the lock.
    head: AtomicPtr<Waiter>,
    tail: UnsafeCell<*const Waiter>,
}

// SAFETY: the tail is read and written through `Locked` only, whose maker holds the lock of the
// chain (contract of `Chain::locked`). Waiters are `Sync`, so that another thread may follow the
// addresses.
unsafe impl Send for Chain {}
// SAFETY: the head is atomic; the tail is under the lock, as for `Send`.
unsafe impl Sync for Chain {}

impl Chain {
    const_new! {
        pub(in crate::lock) fn new() -> Self {
            Self {
                head: AtomicPtr::new(core::ptr::null_mut()),
                tail: UnsafeCell::new(core::ptr::null()),
            }
        }
    }

    /// Whether no thread waits, as far as a caller can know without the lock.
    #[inline]
    pub(in crate::lock) fn looks_empty(&self) -> bool {
        // Relaxed: the caller does not follow the returned address, and argues itself why it may
        // miss a waiter.
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// The chain for the thread that has locked it.
    ///
    /// # Safety
    ///
    /// The caller holds the lock that the chain's owner has for it, for as long as it uses the
    /// result.
    pub(in crate::lock) unsafe fn locked(&self) -> Locked<'_> {
        Locked { chain: self }
    }
}

/// Where a waiter is put: the head goes first.
#[derive(Clone, Copy)]
pub(in crate::lock) enum End {
    Head,
    Tail,
}

/// The chain while the caller holds its lock.
pub(in crate::lock) struct Locked<'a> {
    chain: &'a Chain,
}

impl<'a> Locked<'a> {
    /// Forgets all waiters, because they do not exist in this process.
    pub(in crate::lock) fn clear(&self) {
        self.set_head(core::ptr::null());
        self.set_tail(core::ptr::null());
    }

    /// The waiters from the head to the tail.
    pub(in crate::lock) fn iter(&self) -> impl Iterator<Item = &'a Waiter> {
        // SAFETY: the chain is locked, and a waiter on it stays there until it has been taken off
        // (contract of `push`), for which the chain must be locked.
        core::iter::successors(unsafe { self.head().as_ref() }, |w| unsafe { next(w).as_ref() })
    }

    /// # Safety
    ///
    /// The waiter is on no chain. It does not move until it has been removed from this one: marked,
    /// or removed by its owner.
    pub(in crate::lock) unsafe fn push(&self, waiter: &Waiter, end: End) {
        let (left, right) = match end {
            End::Head => (core::ptr::null(), self.head()),
            End::Tail => (self.tail(), core::ptr::null()),
        };
        self.join(left, waiter);
        self.join(waiter, right);
    }

    /// Takes a waiter off; nothing follows it then.
    ///
    /// # Safety
    ///
    /// The waiter is on this chain.
    pub(in crate::lock) unsafe fn remove(&self, waiter: &Waiter) {
        self.join(prev(waiter), take_next(waiter));
    }

    /// Removes the first waiter for which `taken` is true from the chain.
    pub(in crate::lock) fn take_first(&self, taken: impl Fn(&Waiter) -> bool) -> Batch {
        let Some(waiter) = self.iter().find(|w| taken(w)) else { return Batch::NONE };
        // SAFETY: `find` has just met the waiter on this chain, which is locked.
        unsafe { self.remove(waiter) };
        Batch { first: waiter, len: 1 }
    }

    /// Removes the last waiter from the chain if it is awake and `taken` is true for it.
    pub(in crate::lock) fn take_awake_last(&self, taken: impl Fn(&Waiter) -> bool) -> Batch {
        // SAFETY: a waiter on the chain stays until it was taken off, for which the chain is
        // locked, by the caller.
        let last = unsafe { self.tail().as_ref() };
        let Some(waiter) = last.filter(|w| !w.is_asleep() && taken(w)) else { return Batch::NONE };
        // SAFETY: the waiter is the tail of this chain, which is locked.
        unsafe { self.remove(waiter) };
        Batch { first: waiter, len: 1 }
    }

    /// Removes all waiters for which `taken` is true from the chain, in their order.
    pub(in crate::lock) fn take_all(&self, taken: impl Fn(&Waiter) -> bool) -> Batch {
        let mut batch = Batch::NONE;
        let mut last: Option<&Waiter> = None;
        let mut node = self.head();
        // SAFETY: the chain is locked, and a waiter on it stays until it has been taken off; the
        // link is read before that.
        while let Some(waiter) = unsafe { node.as_ref() } {
            node = next(waiter);
            if !taken(waiter) {
                continue;
            }
            // SAFETY: the loop has just met the waiter on this chain, which is locked.
            unsafe { self.remove(waiter) };
            match last {
                Some(last) => set(&last.next, waiter),
                None => batch.first = waiter,
            }
            batch.len += 1;
            last = Some(waiter);
        }
        batch
    }

    /// Makes two waiters neighbours; null is the end on that side.
    fn join(&self, left: *const Waiter, right: *const Waiter) {
        // SAFETY: null, or a neighbour on this chain, which is locked: it stays until it has been
        // taken off.
        match unsafe { left.as_ref() } {
            Some(left) => set(&left.next, right),
            None => self.set_head(right),
        }
        // SAFETY: null, or a neighbour on this chain, which is locked: it stays until it has been
        // taken off.
        match unsafe { right.as_ref() } {
            Some(right) => set(&right.prev, left),
            None => self.set_tail(left),
        }
    }

    fn head(&self) -> *const Waiter {
        self.chain.head.load(Ordering::Relaxed) // Relaxed: the lock orders it
    }

    fn set_head(&self, waiter: *const Waiter) {
        self.chain.head.store(waiter.cast_mut(), Ordering::Relaxed); // Relaxed: see `looks_empty`
    }

    fn tail(&self) -> *const Waiter {
        // SAFETY: `Locked` exists only while its maker holds the lock of the chain (contract of
        // `Chain::locked`), under which alone the tail is touched.
        self.chain.tail.with(|t| unsafe { *t })
    }

    fn set_tail(&self, waiter: *const Waiter) {
        // SAFETY: `Locked` exists only while its maker holds the lock of the chain (contract of
        // `Chain::locked`), under which alone the tail is touched.
        self.chain.tail.with_mut(|t| unsafe { *t = waiter });
    }
}

/// Waiters that were claimed and taken off a chain, to be marked once the chain is unlocked.
pub(in crate::lock) struct Batch {
    first: *const Waiter,
    pub(in crate::lock) len: u32,
}

impl Batch {
    pub(in crate::lock) const NONE: Self = Self { first: core::ptr::null(), len: 0 };

    /// What the first of the waiters waits for.
    pub(in crate::lock) fn role(&self) -> Option<usize> {
        // SAFETY: a claimed waiter stays until it is marked, and `mark` consumes the batch.
        unsafe { self.first.as_ref() }.map(Waiter::role)
    }

    /// Gives the waiters back to their owners, with a message.
    ///
    /// # Safety
    ///
    /// The waiters were claimed, and the chain is unlocked.
    pub(in crate::lock) unsafe fn mark(self, message: u32) {
        let mut node = self.first;
        // SAFETY: the waiters are claimed (contract of this function), and a claimed one stays
        // until it is marked; its links belong to the thread that claimed it.
        while let Some(waiter) = unsafe { node.as_ref() } {
            // The link is read before the mark is set, because the record's memory may be freed
            // afterwards.
            node = take_next(waiter);
            // SAFETY: the batch has claimed it, it was taken off the unlocked chain (contract of
            // this function), and it is not touched again: the next link is read above.
            unsafe { Waiter::mark(waiter, message) };
        }
    }

    /// Gives the first [`ROWS`] of the waiters back to their owners. The others are in rows behind
    /// these, and an owner has the row behind its waiter: see [`take_next`].
    ///
    /// # Safety
    ///
    /// The waiters were claimed, and the chain is unlocked.
    pub(in crate::lock) unsafe fn mark_in_rows(self) {
        let mut firsts = [core::ptr::null::<Waiter>(); ROWS];
        let mut lasts = firsts;
        let (mut node, mut row) = (self.first, 0);
        // SAFETY: the waiters are claimed (contract of this function), and a claimed one stays
        // until it is marked, which is done when all are in rows; its links belong to the thread
        // that claimed it.
        while let Some(waiter) = unsafe { node.as_ref() } {
            node = take_next(waiter);
            // SAFETY: null, or a waiter that this loop has met: claimed, and not marked yet.
            match unsafe { lasts[row].as_ref() } {
                Some(last) => set(&last.next, waiter),
                None => firsts[row] = waiter,
            }
            lasts[row] = waiter;
            row = if row + 1 < ROWS { row + 1 } else { 0 };
        }
        for first in firsts.into_iter().take_while(|first| !first.is_null()) {
            // SAFETY: the batch has claimed it, it was taken off the unlocked chain (contract of
            // this function), and it is not touched again: with the mark its owner has the row
            // behind it, too.
            unsafe { Waiter::mark(first, 0) };
        }
    }
}

/// How many rows of waiters a broadcast makes: on 2 and on 192 CPUs, 8 were faster than fewer.
const ROWS: usize = if cfg!(loom) { 1 } else { 8 };

/// Removes the row behind a waiter. The waiter is claimed, or was given back to the caller.
pub(in crate::lock) fn take_next(waiter: &Waiter) -> *const Waiter {
    let behind = next(waiter);
    set(&waiter.next, core::ptr::null());
    behind
}

/// The waiter after this one. The chain is locked, or the waiter claimed.
fn next(waiter: &Waiter) -> *const Waiter {
    // SAFETY: neighbours are read and written only with the chain locked, or by the one signaller
    // that has claimed the waiter, as the field's comment says; each caller in this file is one of
    // the two.
    waiter.next.with(|n| unsafe { *n })
}

/// What precedes a waiter. The chain is locked.
fn prev(waiter: &Waiter) -> *const Waiter {
    // SAFETY: neighbours are read and written only with the chain locked, or by the one signaller
    // that has claimed the waiter, as the field's comment says; each caller in this file is one of
    // the two.
    waiter.prev.with(|p| unsafe { *p })
}

/// Writes a link. The chain is locked, or the waiter claimed.
fn set(link: &UnsafeCell<*const Waiter>, to: *const Waiter) {
    // SAFETY: each caller in this file has locked the chain or has claimed the waiter that the link
    // belongs to, and no other thread touches it then.
    link.with_mut(|l| unsafe { *l = to });
}

mortal!(Chain { head, tail });
