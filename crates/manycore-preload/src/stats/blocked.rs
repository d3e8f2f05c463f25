//! The waits between threads, from sampled waits: the waiting place, and the place where the lock
//! had been taken.

use core::sync::atomic::Ordering;

use manycore_stats::{BLOCKED, BY_STACK, Blocked, Mapping};

use super::index::{self, key};
use super::modules;

/// A key is in its own slot or one of the next; a look-up tries `PROBES` slots. If other keys have
/// all of them, a new key is not recorded.
const PROBES: usize = 16;

// Relaxed throughout, unless noted: counters are independent of each other.

/// Counts a wait by the calls of this stack, for a lock of the class with this record. The wait
/// took `ticks` ticks. `holder` is the place where the owner had taken the lock: an address, or a
/// stack that handed it over.
pub fn count(mapping: &Mapping, class: u32, holder: u64, stack: u32, ticks: u64) {
    // Class 0 stands for all locks that found none.
    if class == 0 {
        return;
    }
    let key = key([class.into(), stack.into(), holder]);
    let places =
        (0..PROBES).map(|probe| &mapping.blocked[(key as usize).wrapping_add(probe) % BLOCKED]);
    let Some(place) = places.into_iter().find(|place| index::claim(&place.key, key).is_some())
    else {
        mapping.header.blocked_dropped.fetch_add(1, Ordering::Relaxed);
        return;
    };
    if place.record.load(Ordering::Relaxed) == 0 {
        fill_in(place, class, holder, stack);
        if holder & BY_STACK == 0 {
            modules::note(mapping, &[holder]);
        }
    }
    place.waits.fetch_add(1, Ordering::Relaxed);
    place.wait.fetch_add(ticks, Ordering::Relaxed);
}

/// Initialises a place. Threads that do this at the same time write the same.
fn fill_in(place: &Blocked, class: u32, holder: u64, stack: u32) {
    place.stack.store(stack, Ordering::Relaxed);
    place.holder.store(holder, Ordering::Relaxed);
    // Release: partner of the command's Acquire; a reader that sees the record sees the rest.
    place.record.store(class, Ordering::Release);
}
