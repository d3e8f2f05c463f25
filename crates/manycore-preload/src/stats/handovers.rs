//! Locks that the program makes of a mutex and a condition variable: an interpreter's global lock,
//! a semaphore, a reader-writer lock.
//!
//! No call says whether a thread waits there for a lock or for work. But the thread's actions after
//! it was let in show it: with a lock it comes back to the mutex and wakes the next waiter;
//! otherwise it comes back to wait again. So three counts are kept for a condition variable:
//!
//! - *handed*: the thread has locked the mutex once since it was let in, and signals the same
//!   condition variable, or wakes a thread that waits like it: for another one of its class, or in
//!   the same place;
//! - *returned*: it has locked the mutex once since, and waits again;
//! - *resumed*: it has not released the mutex since, and waits on: the two waits are one.
//!
//! After a thread has locked the mutex several times, its actions show neither. A thread that
//! signals while it still has the mutex from its wait, as at either end of a queue of few places,
//! is not counted. For a thread that hands over, a further count shows whether the thread that had
//! let it in had waited in one of its own places: a requesting and an answering thread hand over to
//! each other all the time, but each has a place of its own. `manycore_profile` has the thresholds
//! from which on it is a lock.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::clock;
use manycore_stats::{BY_STACK, ENTRIES, Entry, FRAMES, HandOvers, Mapping, SLOTS, Slab, WANTED};

use super::{mapping, records, slab, stacks};

// Relaxed throughout: entries are their thread's own, and counters are independent of each other.

/// A let-in thread's actions since then.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The thread has the mutex from its wait, or has just released it.
    Nothing,
    /// The thread has locked the mutex again.
    OneVisit,
    /// More, or what cannot be told.
    More,
}

fn entry(slab: &Slab, mutex: u32) -> &Entry {
    &slab.entries[mutex as usize % ENTRIES]
}

/// The thread's acquisitions of a mutex, if it counts them.
fn acquired(slab: &Slab, mutex: u32) -> Option<u64> {
    let slot = &slab.slots[mutex as usize % SLOTS];
    (slot.record.load(Ordering::Relaxed) == mutex).then(|| slot.acquired.load(Ordering::Relaxed))
}

/// The thread's actions since it was let in with this mutex; `None` if it was not let in.
fn since(slab: &Slab, mutex: u32) -> Option<(&Entry, Since)> {
    let entry = entry(slab, mutex);
    if mutex == 0 || entry.mutex.load(Ordering::Relaxed) != mutex {
        return None;
    }
    let before = entry.acquired.load(Ordering::Relaxed);
    let since = match acquired(slab, mutex).map(|now| now.wrapping_sub(before)) {
        Some(0) => Since::Nothing,
        Some(1) => Since::OneVisit,
        _ => Since::More,
    };
    Some((entry, since))
}

fn of(mapping: &Mapping, condition: u32) -> &HandOvers {
    &records::get(mapping, condition).hand_overs
}

/// The thread, which owns the mutex, starts to wait for a condition variable, in a function that
/// `caller` has called. Returns whether this continues another wait.
pub fn waits(mutex: u32, condition: u32, caller: usize) -> bool {
    let (Some(mapping), Some(slab)) = (mapping::get(), slab()) else { return false };
    if !records::is_own(mutex) || !records::is_own(condition) {
        return false;
    }
    let about = of(mapping, condition);
    about.mutex.store(mutex, Ordering::Relaxed);
    about.site.store(caller as u64, Ordering::Relaxed);
    note_site(entry(slab, mutex), mutex, caller as u64);
    let Some((entry, since)) = since(slab, mutex) else { return false };
    match since {
        Since::Nothing => drop(about.resumed.fetch_add(1, Ordering::Relaxed)),
        Since::OneVisit => {
            let before = of(mapping, entry.condition.load(Ordering::Relaxed));
            before.returned.fetch_add(1, Ordering::Relaxed);
        }
        Since::More => {}
    }
    entry.mutex.store(0, Ordering::Relaxed);
    since == Since::Nothing
}

fn note_site(entry: &Entry, mutex: u32, site: u64) {
    if entry.sites_of.swap(mutex, Ordering::Relaxed) != mutex {
        entry.sites.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
    let known = entry.sites.iter().any(|place| place.load(Ordering::Relaxed) == site);
    if !known {
        entry.sites.iter().fold(site, |new, place| place.swap(new, Ordering::Relaxed));
    }
}

/// The thread has been woken, and owns the mutex again.
pub fn let_in(mutex: u32, condition: u32, caller: usize) {
    let Some(slab) = slab() else { return };
    let Some(acquired) = acquired(slab, mutex) else { return };
    if !records::is_own(mutex) || !records::is_own(condition) {
        return;
    }
    let entry = entry(slab, mutex);
    entry.mutex.store(mutex, Ordering::Relaxed);
    entry.condition.store(condition, Ordering::Relaxed);
    entry.acquired.store(acquired, Ordering::Relaxed);
    entry.since.store(clock::now(), Ordering::Relaxed);
    entry.site.store(caller as u64, Ordering::Relaxed);
    let waker_site = mapping::get()
        .map_or(0, |mapping| of(mapping, condition).waker_site.load(Ordering::Relaxed));
    entry.waker_site.store(waker_site, Ordering::Relaxed);
}

/// The thread has signalled a condition variable, in a function that `caller` has called, and has
/// woken a thread or found none.
pub fn signalled(condition: u32, has_woken: bool, caller: usize) {
    let (Some(mapping), Some(slab)) = (mapping::get(), slab()) else { return };
    if !records::is_own(condition) {
        return;
    }
    let about = of(mapping, condition);
    if has_woken && about.waker.load(Ordering::Relaxed) == WANTED {
        about.waker.store(stacks::here(mapping, caller, FRAMES), Ordering::Relaxed);
    }
    let let_in = since(slab, about.mutex.load(Ordering::Relaxed));
    let site = let_in.map_or(0, |(entry, _)| entry.site.load(Ordering::Relaxed));
    if has_woken {
        about.waker_site.store(site, Ordering::Relaxed);
    }
    let Some((entry, since)) = let_in else { return };
    let own = entry.condition.load(Ordering::Relaxed);
    let is_same = own == condition;
    let is_like_it = records::class(own) == records::class(condition)
        || site == about.site.load(Ordering::Relaxed);
    if since == Since::OneVisit && (is_same || (has_woken && is_like_it)) {
        hands_over(mapping, entry, own);
    }
    let goes_on = if since == Since::Nothing { !is_same } else { !is_same && !has_woken };
    if !goes_on {
        entry.mutex.store(0, Ordering::Relaxed);
    }
}

fn hands_over(mapping: &Mapping, entry: &Entry, condition: u32) {
    let about = of(mapping, condition);
    about.handed.fetch_add(1, Ordering::Relaxed);
    let waker_site = entry.waker_site.load(Ordering::Relaxed);
    if waker_site != 0 {
        let has_been_there =
            entry.sites.iter().any(|own| own.load(Ordering::Relaxed) == waker_site);
        let counter = if has_been_there { &about.alike } else { &about.unlike };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    let ticks = clock::now().wrapping_sub(entry.since.load(Ordering::Relaxed));
    super::count_hold(mapping, records::get(mapping, condition), ticks);
}

/// A sampled wait begins: asks the thread that will end it to note its place.
pub fn want_waker(mapping: &Mapping, condition: u32) {
    if records::is_own(condition) {
        of(mapping, condition).waker.store(WANTED, Ordering::Relaxed);
    }
}

/// The thread that ended a sampled wait, as a holder; `None` if it is unknown.
pub fn waker(mapping: &Mapping, condition: u32) -> Option<u64> {
    let waker: &AtomicU32 = &of(mapping, condition).waker;
    let stack = waker.load(Ordering::Relaxed);
    (stack != 0 && stack & WANTED == 0).then(|| BY_STACK | u64::from(stack))
}

/// The thread has ended.
pub fn clear(slab: &Slab) {
    for entry in &slab.entries {
        entry.mutex.store(0, Ordering::Relaxed);
        entry.sites_of.store(0, Ordering::Relaxed);
    }
}
