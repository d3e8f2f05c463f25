//! A thread's note for itself: the time, and the lock in whose queue it has the [holder's
//! node](super::queue_node), or which it released last. A thread has one note. So it waits in no
//! queue while it holds a lock by a node in another.

use crate::sync::{thread, time};

/// A thread that comes back sooner (in ns) should have kept the lock: about as long as a hand-over
/// takes.
pub(super) const SOON: u64 = 240;

/// Notes that the thread releases the lock at this address now.
pub(super) fn note_leaving(lock: usize) {
    thread::note([lock, odd(time::now())]);
}

/// Notes nothing.
pub(super) fn forget() {
    thread::note([0; 2]);
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

/// Whether the note has a time, and not a node.
pub(super) fn is_time(noted: usize) -> bool {
    noted & 1 != 0
}
