//! What a thread notes for itself: of which lock's queue it has the holder's place, or which lock
//! it has left last, and when. A thread has one note, so that it waits in no queue as long as it
//! holds a lock by a place in another.

use core::ptr::NonNull;

use super::place::Place;
use crate::sync::{thread, time};

/// Who comes back sooner (in ns), about as long as a hand-over takes, should have stayed.
pub(super) const SOON: u64 = 240;

/// Notes the holder's place in the queue of the lock at this address.
pub(super) fn note_place(lock: usize, place: NonNull<Place>) {
    thread::note([lock, place.as_ptr().expose_provenance()]);
}

/// Notes that the thread leaves the lock at this address now.
pub(super) fn note_leaving(lock: usize) {
    thread::note([lock, odd(time::now())]);
}

/// Notes nothing.
pub(super) fn forget() {
    thread::note([0; 2]);
}

/// The place in the queue of the lock at this address, if the thread has noted it.
#[inline]
pub(super) fn place_of(lock: usize) -> Option<NonNull<Place>> {
    if thread::noted()[0] == lock { place() } else { None }
}

/// The place that the thread has noted, of whichever lock.
#[inline]
pub(super) fn place() -> Option<NonNull<Place>> {
    let [_, place] = thread::noted();
    if is_time(place) {
        return None;
    }
    NonNull::new(core::ptr::with_exposed_provenance_mut(place))
}

/// Whether the thread has left the lock at this address a moment ago.
pub(super) fn has_left_soon_before(lock: usize, now: u64) -> bool {
    let [noted, left] = thread::noted();
    let since = odd(now).wrapping_sub(left) >> 1;
    noted == lock && is_time(left) && (since as u64) < SOON
}

/// Places are at even addresses; times are not.
fn odd(now: u64) -> usize {
    (now as usize) << 1 | 1
}

fn is_time(noted: usize) -> bool {
    noted & 1 != 0
}
