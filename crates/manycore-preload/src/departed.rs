//! Recently destroyed condition variables: for waiters that may have to touch one once more.
//!
//! Each address, by its hash, has a page in a book of departures. While the condition variable
//! exists, a signaller tells its waiter the number of the page's last entry. A waiter that has to
//! pass the signal on checks whether the address has been entered since. A thread that destroys a
//! condition variable enters it under the page's lock, so it waits for a waiter that is using it.
//!
//! A page has room for some entries. If more have come between a signal and the check, the waiter
//! cannot know, and touches nothing. A signal may be lost then, to a thread that is cancelled and
//! meanwhile loses its CPU for a dozen departures of one page.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use manycore::lock::{Futex, PlainLock, Waiter};

const PAGES: usize = 64;
const ENTRIES: u32 = 14;

#[repr(align(64))]
struct Page {
    lock: Futex,
    /// How many were ever entered.
    count: AtomicU32,
    entries: [AtomicUsize; ENTRIES as usize],
}

// Relaxed throughout: the page's lock orders its entries. Signallers read the count without it: the
// program orders entries of the same address, and entries of other addresses do not matter.

static BOOK: [Page; PAGES] = [const {
    Page {
        lock: Futex::new(),
        count: AtomicU32::new(0),
        entries: [const { AtomicUsize::new(0) }; ENTRIES as usize],
    }
}; PAGES];

/// The number of bits of the number that a signaller passes to a waiter. The number is not 0.
const BITS: u32 = 26;
const _: () = assert!(2 << BITS <= Waiter::MESSAGES);

fn page(address: *const ()) -> &'static Page {
    &BOOK[(address.addr().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) % PAGES]
}

/// The number that tells a waiter of the object at this address how far its page is written.
pub fn now(address: *const ()) -> u32 {
    1 << BITS | page(address).count.load(Ordering::Relaxed) & ((1 << BITS) - 1)
}

/// Adds the object at this address, which is being destroyed.
pub fn note(address: *const ()) {
    let page = page(address);
    page.lock.acquire();
    let count = page.count.load(Ordering::Relaxed);
    page.entries[(count % ENTRIES) as usize].store(address.addr(), Ordering::Relaxed);
    // Its range is a multiple of the number of entries.
    page.count.store((count + 1) % (ENTRIES << (BITS - 4)), Ordering::Relaxed);
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { page.lock.release() };
}

/// Calls `act`, unless the object at the address was entered here since [`now`] returned `since`.
pub fn unless_gone(address: *const (), since: u32, act: impl FnOnce()) {
    let page = page(address);
    page.lock.acquire();
    let range = ENTRIES << (BITS - 4);
    let since = since & ((1 << BITS) - 1);
    let count = page.count.load(Ordering::Relaxed);
    let new = (count + range - since) % range;
    let is_new = |age: u32| {
        let entry = &page.entries[((since + age) % ENTRIES) as usize];
        entry.load(Ordering::Relaxed) == address.addr()
    };
    if new <= ENTRIES && !(0..new).any(is_new) {
        act();
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { page.lock.release() };
}

/// Called in the child of a fork, where no other thread exists that could use a page.
pub fn forked() {
    for page in &BOOK {
        crate::own_lock::set_free(&page.lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(address: *const (), since: u32) -> bool {
        let mut acted = false;
        unless_gone(address, since, || acted = true);
        acted
    }

    #[test]
    fn what_has_gone_since_is_known_and_what_went_before_does_not_matter() {
        let objects = [0_u64; 2];
        let [first, second] =
            [&raw const objects[0], &raw const objects[1]].map(<*const u64>::cast);
        for _ in 0..3 * ENTRIES {
            let before = now(first);
            assert!(acts(first, before));
            note(second);
            assert!(acts(first, before), "another one has gone");
            note(first);
            assert!(!acts(first, before));
            assert!(acts(first, now(first)), "a new one is there");
        }
        let before = now(first);
        (0..=ENTRIES).for_each(|_| note(first));
        assert!(!acts(first, before), "too many to tell");
    }
}
