//! The table of slots of the simulated process, in its memory.

use core::ptr::with_exposed_provenance;

use manycore_sim::backend;

use super::atomic::AtomicUsize;

/// As the Linux back end has it.
const SLOTS: usize = 4096;

/// The word with the table's address, 0 as long as there is none.
const WORD: usize = 8;

/// Where there is no simulation.
static ON_HOST: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// All slots.
pub fn slots() -> &'static [AtomicUsize] {
    if backend::word(WORD) == 0 {
        let Some(table) = backend::memory(SLOTS * size_of::<AtomicUsize>()) else {
            return &ON_HOST;
        };
        backend::set_word(WORD, table.as_ptr().expose_provenance() as u64);
    }
    let table = with_exposed_provenance::<AtomicUsize>(backend::word(WORD) as usize);
    // SAFETY: memory of that size that is there as long as the simulation, and zero at first, which is a table of zeros.
    unsafe { core::slice::from_raw_parts(table, SLOTS) }
}
