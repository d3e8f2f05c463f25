//! The order in which locks are taken: pairs of a held lock and a lock that its holder wants.
//!
//! A thread counts its own steps from lock to lock in its slab, like acquisitions; the shared table
//! changes only when a thread takes a step in a new manner.

use core::sync::atomic::Ordering;

use manycore_stats::{
    FRAMES, GUARDS, HELD, Mapping, ORDERS, Order, SEVERAL, SHARED, STEPS, Slab, Step,
};

use super::index::{self, key};
use super::{Object, mapping, modules, records, stacks};

/// A key is in its own slot or one of the next; a look-up tries `PROBES` slots. If other keys have
/// all of them, a new order is not recorded.
const PROBES: usize = 16;

/// In place of a manner: it has to be determined again.
const UNKNOWN: u64 = u64::MAX;

// Relaxed throughout, unless noted: steps are their thread's own, and of orders, counters are
// independent of each other.

/// Notes that the thread starts to wait for a lock. If it waits for ever, only this note shows the
/// deadlock.
pub fn wanted(slab: &Slab, depth: usize, object: &Object, how: u32) {
    step(slab, depth, object, how, 0);
}

/// Counts that the thread has taken a lock in the manner `how`, while it held `depth` others.
pub fn taken(slab: &Slab, depth: usize, object: &Object, how: u32) {
    step(slab, depth, object, how, 1);
}

fn step(slab: &Slab, depth: usize, object: &Object, how: u32, times: u64) {
    let wanted = object.record.load(Ordering::Relaxed);
    for (at, held) in slab.held[..depth.min(HELD)].iter().enumerate() {
        let record = held.record.load(Ordering::Relaxed);
        let held_how = held.how.load(Ordering::Relaxed);
        let holds = held.object.load(Ordering::Relaxed);
        // A lock can be read twice at a time, and several can have one record; but a thread that
        // waits for a lock of a record that it holds may wait for ever.
        let counts = record != wanted || (times == 0 && holds == object.address as u64);
        if !counts || holds == 0 || !records::is_own(record) || !records::is_own(wanted) {
            continue;
        }
        let modes = (held_how & SHARED) | (how & SHARED) << 1;
        count(slab, &Taken { depth, at, record, wanted, modes, object }, times);
    }
}

/// A lock that is wanted with another one held.
struct Taken<'a> {
    /// Locks that are held.
    depth: usize,
    /// Which of them this is about.
    at: usize,
    record: u32,
    wanted: u32,
    modes: u32,
    object: &'a Object<'a>,
}

impl Taken<'_> {
    /// The records of the other locks that the thread holds exclusively.
    fn others<'a>(&'a self, slab: &'a Slab) -> impl Iterator<Item = u32> + 'a {
        let held = slab.held[..self.depth.min(HELD)].iter().enumerate();
        held.filter(|(at, held)| {
            *at != self.at
                && held.how.load(Ordering::Relaxed) & SHARED == 0
                && held.object.load(Ordering::Relaxed) != 0
        })
        .map(|(_, held)| held.record.load(Ordering::Relaxed))
    }

    /// Both locks, in a word.
    fn pair(&self) -> u64 {
        u64::from(self.record) << 32 | u64::from(self.wanted)
    }
}

fn count(slab: &Slab, taken: &Taken, times: u64) {
    let pair = taken.pair();
    let others =
        taken.others(slab).fold(0, |sum: u64, record| sum.wrapping_add(key([record.into()])));
    let manner = others << 2 | u64::from(taken.modes);
    let step = &slab.steps[(key([pair]) >> 32) as usize % STEPS];
    if step.key.load(Ordering::Relaxed) == pair && step.manner.load(Ordering::Relaxed) == manner {
        step.seen.store(step.seen.load(Ordering::Relaxed) + times, Ordering::Relaxed);
    } else if let Some(mapping) = mapping::get() {
        let manner = manner.min(UNKNOWN - 1);
        note(mapping, slab, step, taken, manner, times);
    }
}

/// Notes an order of two locks that the thread has not used before, or not recently.
#[cold]
fn note(mapping: &Mapping, slab: &Slab, step: &Step, taken: &Taken, manner: u64, times: u64) {
    flush(mapping, step);
    let key = key([taken.pair(), taken.modes.into()]);
    let found = (0..PROBES).find_map(|probe| {
        let number = (key as usize).wrapping_add(probe) % ORDERS;
        let order = &mapping.orders[number];
        index::claim(&order.key, key).map(|is_new| (number, is_new))
    });
    let Some((number, is_new)) = found else {
        mapping.header.orders_dropped.fetch_add(times, Ordering::Relaxed);
        return;
    };
    let order = &mapping.orders[number];
    // Acquire: partner of the Release in `fill_in`.
    let is_ready = order.wanted.load(Ordering::Acquire) != 0;
    if is_new {
        fill_in(mapping, slab, order, taken);
    } else if is_ready {
        narrow(slab, order, taken);
    }
    step.manner.store(if is_new || is_ready { manner } else { UNKNOWN }, Ordering::Relaxed);
    step.order.store(number as u32, Ordering::Relaxed);
    step.seen.store(times, Ordering::Relaxed);
    step.key.store(taken.pair(), Ordering::Relaxed);
}

fn fill_in(mapping: &Mapping, slab: &Slab, order: &Order, taken: &Taken) {
    let stack = stacks::here(mapping, taken.object.caller, FRAMES);
    order.stack.store(stack, Ordering::Relaxed);
    for (place, other) in order.guards.iter().zip(taken.others(slab)) {
        place.store(other, Ordering::Relaxed);
    }
    let caller = slab.held[taken.at].caller.load(Ordering::Relaxed);
    modules::note(mapping, &[caller]);
    order.held_caller.store(caller, Ordering::Relaxed);
    order.held.store(taken.record, Ordering::Relaxed);
    order.modes.store(taken.modes, Ordering::Relaxed);
    order.thread_entry.store(slab.thread_entry.load(Ordering::Relaxed), Ordering::Relaxed);
    // Release: partner of the Acquires in `note` and in the command; a reader that sees the wanted
    // lock sees the rest.
    order.wanted.store(taken.wanted, Ordering::Release);
}

/// Reduces the order's properties to those that all threads share, in all manners.
fn narrow(slab: &Slab, order: &Order, taken: &Taken) {
    for guard in &order.guards[..GUARDS] {
        let record = guard.load(Ordering::Relaxed);
        if record != 0 && !taken.others(slab).any(|other| other == record) {
            guard.store(0, Ordering::Relaxed);
        }
    }
    if order.thread_entry.load(Ordering::Relaxed) != slab.thread_entry.load(Ordering::Relaxed) {
        order.thread_entry.store(SEVERAL, Ordering::Relaxed);
    }
}

/// Moves a step's count to its order.
fn flush(mapping: &Mapping, step: &Step) {
    if step.key.load(Ordering::Relaxed) != 0 {
        step.key.store(0, Ordering::Relaxed);
        let order = &mapping.orders[step.order.load(Ordering::Relaxed) as usize % ORDERS];
        order.seen.fetch_add(step.seen.load(Ordering::Relaxed), Ordering::Relaxed);
        step.seen.store(0, Ordering::Relaxed);
    }
}

/// Moves the counts of a thread that has ended.
pub fn flush_all(mapping: &Mapping, slab: &Slab) {
    slab.steps.iter().for_each(|step| flush(mapping, step));
}
