//! The table of slots of the simulated process, in its memory.

use core::ptr::with_exposed_provenance;

use manycore_sim::backend;

use super::atomic::AtomicUsize;
use crate::sync::of_process::OfProcess;

/// As the Linux back end has it.
const SLOTS: usize = 4096;

/// Where there is no simulation.
static ON_HOST: [AtomicUsize; SLOTS] = [const { AtomicUsize::new(0) }; SLOTS];

/// All slots.
pub fn slots() -> &'static [AtomicUsize] {
    // SAFETY: all slots are words, for which zero is a valid value: a slot without a mark.
    unsafe { of_process(OfProcess::Slots, &ON_HOST) }
}

/// A table of the simulated process with as many entries as this one has; this one is for code
/// outside of a simulation.
///
/// # Safety
///
/// An entry whose bytes are zero is a new one, and entries of this name are of this type.
pub unsafe fn of_process<T>(name: OfProcess, on_host: &'static [T]) -> &'static [T] {
    // The word has the table's address, 0 as long as there is none.
    let word = name as usize;
    if backend::word(word) == 0 {
        // With room to align it.
        let Some(table) = backend::memory(size_of_val(on_host) + align_of::<T>()) else {
            return on_host;
        };
        let table = table.as_ptr();
        let table = table.wrapping_add(table.align_offset(align_of::<T>()));
        backend::set_word(word, table.expose_provenance() as u64);
    }
    let table = with_exposed_provenance::<T>(backend::word(word) as usize);
    // SAFETY: memory of that size that is valid as long as the simulation, and zero at first, which
    // is a table of new entries.
    unsafe { core::slice::from_raw_parts(table, on_host.len()) }
}
