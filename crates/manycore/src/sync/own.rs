//! The index of the calling CPU's slot in an array with a slot for each CPU.

use super::cpu;

/// The number, below `places`, of the place of the core on which the caller runs, or ran a moment
/// ago.
#[inline]
pub(crate) fn own_of(places: usize) -> usize {
    let core = cpu::current() as usize;
    // Usually there is one for each core. This avoids a division, which would take a large part of
    // the time.
    if core < places { core } else { core % places }
}
