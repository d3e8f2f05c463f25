//! Which of several places is the calling thread's core's, for what each core has one of.

use super::cpu;

/// That of the core on which the caller runs, or ran a moment ago, of this many places; at least 1.
#[inline]
pub(crate) fn own_of(places: usize) -> usize {
    let core = cpu::current() as usize;
    // Mostly there is one for each core: a division would be a good part of what is done there.
    if core < places { core } else { core % places }
}
