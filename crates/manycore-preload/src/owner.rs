//! By which number a thread owns a lock: the one that glibc has in its own record of the thread, as
//! with glibc's locks.
//!
//! It is the kernel's number, except in a child that a program clones past the C library. There it
//! stays the parent's until the program overwrites it with the child's. The sandboxes of Chromium
//! and Firefox do so. To check that they have written to the right place, they read the owner of a
//! mutex that they acquire; if that is another number, they end the child.

use core::arch::asm;
use core::sync::atomic::{AtomicIsize, Ordering};

use manycore::sync::thread;
use manycore_interpose::objects;

/// The offset of the number from the thread pointer; 0 as long as that is not known.
static PLACE: AtomicIsize = AtomicIsize::new(0);

/// The calling thread's.
#[inline]
pub fn id() -> u32 {
    // Relaxed: the number is the same whether it is known already or not. No other data depends on
    // it.
    match PLACE.load(Ordering::Relaxed) {
        0 => thread::id(),
        // SAFETY: `find` has stored the place after it has found the thread's number in it.
        place => unsafe { at(place) },
    }
}

/// Finds the field, by glibc's description for debuggers: its size in bits, its number of elements,
/// and its offset in glibc's record of a thread. On x86-64 that record begins at the thread
/// pointer; on AArch64 it ends there.
pub fn find() {
    let mut glibc = objects::in_search_order().filter(|object| object.is_glibc());
    let Some((_, described)) = objects::find(&mut glibc, c"_thread_db_pthread_tid") else {
        return;
    };
    // SAFETY: glibc describes a field of its own for debuggers by three numbers, which are
    // constant.
    let [bits, count, offset] = unsafe { *(described as *const [u32; 3]) };
    let begin = match cfg!(target_arch = "aarch64") {
        false => 0,
        true => {
            let mut glibc = objects::in_search_order().filter(|object| object.is_glibc());
            let size = objects::find(&mut glibc, c"_thread_db_sizeof_pthread");
            let Some((_, size)) = size else { return };
            // SAFETY: `size` is the address of a constant of four bytes, by its name; glibc is
            // never unloaded.
            -(unsafe { *(size as *const u32) } as isize)
        }
    };
    let place = begin + offset as isize;
    let fits = bits == u32::BITS && count == 1 && (1..4096).contains(&place.unsigned_abs());
    // SAFETY: glibc's description says that the place is within its record of the thread, and
    // `fits` that it is near the thread pointer.
    if fits && unsafe { at(place) } == thread::id() {
        // Relaxed: see `id`.
        PLACE.store(place, Ordering::Relaxed);
    }
}

/// # Safety
///
/// The place is within glibc's record of the thread, to which the thread pointer points.
#[inline]
unsafe fn at(place: isize) -> u32 {
    let id: u32;
    // SAFETY: the place is within glibc's record of the thread (contract of this function). Only
    // this thread writes there, and no reference to it exists.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {id:e}, dword ptr fs:[{place}]",
            place = in(reg) place,
            id = lateout(reg) id,
            options(nostack, readonly, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "mrs {pointer}, tpidr_el0",
            "ldr {id:w}, [{pointer}, {place}]",
            pointer = out(reg) _,
            place = in(reg) place,
            id = lateout(reg) id,
            options(nostack, readonly, preserves_flags),
        );
    }
    id
}
