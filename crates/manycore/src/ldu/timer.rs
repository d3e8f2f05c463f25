//! A timer for structures that no thread reads for long.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::hint;

/// Calls `act` about every this many nanoseconds (below 10^9), on the calling thread, until `stop`
/// is set.
///
/// A kernel has timers of its own; a program has a thread for this, see the example of [the
/// module](super#timer).
pub fn every(nanoseconds: u32, stop: &AtomicBool, mut f: impl FnMut()) {
    // Acquire: partner of the store that sets `stop`, for the owner's earlier actions.
    while !stop.load(Ordering::Acquire) {
        hint::sleep(nanoseconds);
        f();
    }
}
