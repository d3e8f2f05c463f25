//! The table of slots, where the process is the host's.

use super::atomic::AtomicUsize;

/// As many as in the paper on BRAVO, for which the table is: 32 KiB.
const SLOTS: usize = 4096;

#[repr(align(128))]
struct ProcessTable([AtomicUsize; SLOTS]);

static TABLE: ProcessTable = ProcessTable([const { AtomicUsize::new(0) }; SLOTS]);

/// All slots.
#[inline]
pub fn slots() -> &'static [AtomicUsize] {
    &TABLE.0
}
