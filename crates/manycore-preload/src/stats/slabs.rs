//! Slabs: gives counters to each thread, and passes those of an ended thread to the next one.
//!
//! A thread does not announce that it will never count again: the kernel is asked when another
//! thread needs a slab.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore::sync::thread;
use manycore_stats::{Mapping, Slab};
use syscalls::{Errno, Sysno};

use super::asked::asked;
use super::room::{self, Part};
use super::{handovers, held, mapping, orders, records, thread_entries};

/// Protects the distribution of slabs. Between the check whether a thread has ended and the note of
/// the next one, no other thread may take the same slab, nor may a new thread with the same number.
static GIVING: Futex = Futex::new();

/// The slab that a thread tries next.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// How many slabs a thread tries before it takes a new one. With two, most slabs in use belong to
/// living threads.
const PROBES: usize = 2;

// Relaxed throughout: `GIVING` orders all accesses except those of the only thread of a forked
// child.

/// Gives the calling thread a slab; `None` if there are no statistics, or more threads than slabs.
#[cold]
pub fn attach() -> Option<&'static Slab> {
    let mapping = mapping::get()?;
    GIVING.acquire();
    let slab = left_behind(mapping).or_else(|| fresh(mapping));
    if let Some(slab) = slab {
        slab.thread.store(thread::kernel_id(), Ordering::Relaxed);
        slab.thread_entry.store(thread_entries::give(mapping), Ordering::Relaxed);
        thread::local().extension.set(core::ptr::from_ref(slab).cast_mut().cast());
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { GIVING.release() };
    slab.inspect(|slab| thread_entries::watch(slab))
}

/// A slab whose thread has ended.
fn left_behind(mapping: &Mapping) -> Option<&Slab> {
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    (0..PROBES.min(used)).find_map(|_| {
        let number = NEXT.load(Ordering::Relaxed);
        NEXT.store(number.wrapping_add(1), Ordering::Relaxed);
        let slab = &mapping.slabs[number as usize % used];
        let is_free = has_ended(slab.thread.load(Ordering::Relaxed));
        is_free.then(|| cleared(mapping, slab))
    })
}

/// Moves the counts of the ended thread out of its slab; returns the slab.
fn cleared<'a>(mapping: &Mapping, slab: &'a Slab) -> &'a Slab {
    for slot in &slab.slots {
        let record = slot.record.swap(0, Ordering::Relaxed);
        if record != 0 {
            super::flush(mapping, slab, slot, records::get(mapping, record));
        }
    }
    orders::flush_all(mapping, slab);
    held::clear(slab);
    handovers::clear(slab);
    slab
}

/// Whether no thread of this process has the number.
fn has_ended(thread: u32) -> bool {
    if thread == 0 {
        return true;
    }
    // SAFETY: neither call touches memory: `getpid` takes no arguments, and `tgkill` with signal 0
    // only checks whether there is such a thread.
    let sent = unsafe {
        let process = asked!(Sysno::getpid);
        Errno::from_ret(asked!(Sysno::tgkill, process, thread, 0))
    };
    sent == Err(Errno::ESRCH)
}

/// A slab that no thread has had.
fn fresh(mapping: &Mapping) -> Option<&Slab> {
    let number = mapping.header.slabs.load(Ordering::Relaxed);
    let slab = mapping.slabs.get(number as usize)?;
    if !room::has(mapping, Part::Slabs, number as usize + 1) {
        return None;
    }
    mapping.header.slabs.store(number + 1, Ordering::Relaxed);
    Some(slab)
}

/// Called in the child of a fork, which has no slab yet.
pub fn forked() {
    crate::own_lock::set_free(&GIVING);
}
