//! The index of the calling CPU's slot in an array with a slot for each CPU.

use super::cpu;

/// The number, below `places`, of the place of the core on which the caller runs, or ran a moment
/// ago.
#[inline]
pub(crate) fn own_of(places: usize) -> usize {
    let core = cpu::current() as usize;
    // Mostly there is one for each core: a division would be a good part of what is done there.
    if core < places { core } else { core % places }
}
