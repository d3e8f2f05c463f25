//! How many allocations are in use, so that no address is given out twice.
//!
//! A simulation that failed may never free its memory. That memory is given up: its addresses are
//! not used again, and its allocations are not counted any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::BASE;

struct InUse {
    /// Allocations at `usable` and above that were not freed.
    live: usize,
    /// Memory below this address was given up.
    usable: usize,
}

/// Threads of the host that do not simulate free what a simulation has left to them.
static IN_USE: Mutex<InUse> = Mutex::new(InUse { live: 0, usable: BASE });

fn in_use() -> MutexGuard<'static, InUse> {
    // No code panics while it has the lock.
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many allocations were neither freed nor given up.
pub(crate) fn live() -> usize {
    in_use().live
}

pub(super) fn allocated() {
    in_use().live += 1;
}

pub(super) fn freed(address: usize) {
    let mut in_use = in_use();
    if address >= in_use.usable {
        in_use.live -= 1;
    }
}

/// Where a simulation may begin; none while allocations are in use.
pub(super) fn start() -> Option<usize> {
    let in_use = in_use();
    (in_use.live == 0).then_some(in_use.usable)
}

/// Gives up all allocations that were not freed, and all addresses below `end`. Without any, all
/// addresses stay usable.
pub(super) fn give_up(end: usize) {
    let mut in_use = in_use();
    if in_use.live > 0 {
        (in_use.live, in_use.usable) = (0, end);
    }
}
