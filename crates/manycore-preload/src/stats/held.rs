//! The locks that a thread holds, the latest last. Waiters read this list to find the place where
//! the owner took the lock, and the thread itself reads it when it takes another lock.
//!
//! A lock is assumed to be released by the thread that took it. If another thread releases it, that
//! thread searches some of the others' lists for the lock and removes it.

use core::sync::atomic::Ordering;

use manycore_stats::{HELD, Held, Mapping, SHARED, Slab};

use super::{Attempt, Mode, Object, mapping, orders};

/// The most threads whose lists are searched for a lock.
const PROBES: usize = 256;

// Relaxed throughout: the list is its thread's own. Others read it now and then, and may find a
// change in progress.

/// Notes that the thread has taken a lock that has a record.
#[inline]
pub fn push(slab: &Slab, object: &Object, mode: Mode, attempt: Attempt) {
    let how = how(mode);
    if slab.depth.load(Ordering::Relaxed) != 0 {
        return push_further(slab, object, how, attempt);
    }
    put(&slab.held[0], object, how);
    slab.depth.store(1, Ordering::Relaxed);
}

#[inline]
fn put(held: &Held, object: &Object, how: u32) {
    held.caller.store(object.caller as u64, Ordering::Relaxed);
    held.record.store(object.record.load(Ordering::Relaxed), Ordering::Relaxed);
    held.how.store(how, Ordering::Relaxed);
    held.object.store(object.address as u64, Ordering::Relaxed);
}

/// As [`push`], for a lock that is taken while others are held. An attempt that gives up cannot
/// deadlock, so it makes no order.
#[inline(never)]
fn push_further(slab: &Slab, object: &Object, how: u32, attempt: Attempt) {
    let depth = without_released(slab, slab.depth.load(Ordering::Relaxed) as usize);
    if attempt == Attempt::Waits {
        orders::taken(slab, depth, object, how);
    }
    if let Some(free) = slab.held.get(depth) {
        put(free, object, how);
        slab.depth.store(depth as u32 + 1, Ordering::Relaxed);
    } else {
        slab.beyond.store(slab.beyond.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// Notes that the thread begins to wait for a lock, for the duration of the wait.
#[inline]
pub fn wanted(slab: &Slab, object: &Object, mode: Mode) {
    if slab.depth.load(Ordering::Relaxed) != 0 {
        let depth = without_released(slab, slab.depth.load(Ordering::Relaxed) as usize);
        orders::wanted(slab, depth, object, how(mode));
    }
}

/// As the layout has it.
fn how(mode: Mode) -> u32 {
    if mode == Mode::Shared { SHARED } else { 0 }
}

/// The depth without locks at the end of the list that another thread has released.
fn without_released(slab: &Slab, depth: usize) -> usize {
    let mut depth = depth.min(HELD);
    while depth > 0 && slab.held[depth - 1].object.load(Ordering::Relaxed) == 0 {
        depth -= 1;
    }
    depth
}

/// Notes that the thread releases a lock.
#[inline]
pub fn pop(slab: &Slab, address: *const ()) {
    let [first, ..] = &slab.held;
    let alone = slab.depth.load(Ordering::Relaxed) == 1;
    if alone && first.object.load(Ordering::Relaxed) == address as u64 {
        slab.depth.store(0, Ordering::Relaxed);
    } else {
        pop_further(slab, address as u64);
    }
}

#[inline(never)]
fn pop_further(slab: &Slab, address: u64) {
    let mut depth = (slab.depth.load(Ordering::Relaxed) as usize).min(HELD);
    let is_it = |held: &Held| held.object.load(Ordering::Relaxed) == address;
    if let Some(at) = slab.held[..depth].iter().rposition(is_it) {
        for pair in slab.held[at..depth].windows(2) {
            move_down(&pair[1], &pair[0]);
        }
        depth = without_released(slab, depth - 1);
        slab.depth.store(depth as u32, Ordering::Relaxed);
    } else if slab.beyond.load(Ordering::Relaxed) > 0 {
        slab.beyond.store(slab.beyond.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    } else {
        pop_of_another(address as *const ());
    }
}

/// If another thread removes the entry meanwhile, that is lost: the thread then seems to hold the
/// lock still.
fn move_down(from: &Held, to: &Held) {
    to.caller.store(from.caller.load(Ordering::Relaxed), Ordering::Relaxed);
    to.record.store(from.record.load(Ordering::Relaxed), Ordering::Relaxed);
    to.how.store(from.how.load(Ordering::Relaxed), Ordering::Relaxed);
    to.object.store(from.object.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Removes a lock from the list of the thread that took it, when another thread releases it.
#[cold]
pub fn pop_of_another(address: *const ()) {
    let Some(mapping) = mapping::get() else { return };
    let crossed = |held: &Held| {
        let (from, to) = (address as u64, 0);
        held.object.load(Ordering::Relaxed) == from
            && held.object.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let _ = slabs(mapping).flat_map(of).any(crossed);
}

/// The return address of the call by which the owner of the lock took it; 0 if it cannot be found.
/// `owner` is that thread, or 0 if it is unknown.
pub fn holder(mapping: &Mapping, address: *const (), owner: u32) -> u64 {
    let is_owner = |slab: &&Slab| owner == 0 || slab.thread.load(Ordering::Relaxed) == owner;
    let is_it = |held: &&Held| held.object.load(Ordering::Relaxed) == address as u64;
    let found = slabs(mapping).filter(is_owner).flat_map(of).find(is_it);
    found.map_or(0, |held| {
        let caller = held.caller.load(Ordering::Relaxed);
        // It may have been released, and the entry may belong to another lock by now.
        if is_it(&held) { caller } else { 0 }
    })
}

fn slabs(mapping: &Mapping) -> impl Iterator<Item = &Slab> {
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    mapping.slabs[..used.min(PROBES)].iter()
}

fn of(slab: &Slab) -> &[Held] {
    &slab.held[..(slab.depth.load(Ordering::Relaxed) as usize).min(HELD)]
}

/// The thread has ended, whatever it held.
pub fn clear(slab: &Slab) {
    slab.depth.store(0, Ordering::Relaxed);
    slab.beyond.store(0, Ordering::Relaxed);
    slab.waiting.store(0, Ordering::Relaxed);
}
