//! How much of the mapping's parts is mapped: the used bytes, and some more.
//!
//! A program's address space may be limited, and all its memory may be locked. So only the
//! beginning of each part is mapped at first, at its final place; the rest of its place is left
//! free. A part grows in its place (`mremap`), which needs no descriptor and no path: the program
//! may have closed the file and left the directory. A part that cannot grow is full.
//!
//! The place is one where neither the kernel nor sanitizers, virtual machines or interpreters map
//! anything by themselves: behind position-independent programs and their heaps, ahead of libraries
//! and stacks.

use core::ffi::c_void;
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use manycore::sync::clock;
use manycore_stats::{
    Blocked, Distributions, Mapping, Module, Order, Record, Site, Slab, Stack, ThreadEntry, Waits,
};
use syscalls::{Errno, Sysno, raw_syscall};

use super::asked::asked;

const PAGE: usize = 4096;
/// From here on, at a multiple of [`APART`].
const FIRST_PLACE: usize = 0x5670_0000_0000;
const APART: usize = 2 << 20;
const PLACES: u64 = 1 << 14;
/// This many places are tried.
const TRIES: usize = 8;

/// A part of the mapping that grows.
#[derive(Clone, Copy)]
pub enum Part {
    /// [`Mapping::records`]
    Records,
    /// [`Mapping::distributions`]
    Distributions,
    /// [`Mapping::slabs`]
    Slabs,
    /// [`Mapping::stacks`]
    Stacks,
    /// [`Mapping::sites`]
    Sites,
    /// [`Mapping::thread_entries`]
    ThreadEntries,
    /// [`Mapping::waits`]
    Waits,
}

/// The offset of each part, the size of its elements, and their initial number. Parts that do not
/// grow come last.
const PARTS: [(usize, usize, usize); 12] = [
    (offset_of!(Mapping, records), size_of::<Record>(), 1024),
    (offset_of!(Mapping, distributions), size_of::<Distributions>(), 64),
    (offset_of!(Mapping, slabs), size_of::<Slab>(), 24),
    (offset_of!(Mapping, stacks), size_of::<Stack>(), 1024),
    (offset_of!(Mapping, sites), size_of::<Site>(), 2048),
    (offset_of!(Mapping, thread_entries), size_of::<ThreadEntry>(), 256),
    (offset_of!(Mapping, waits), size_of::<Waits>(), 1024),
    (offset_of!(Mapping, header), 1, PAGE),
    (offset_of!(Mapping, modules), size_of::<Module>(), usize::MAX),
    (offset_of!(Mapping, paths), size_of::<AtomicU64>(), usize::MAX),
    (offset_of!(Mapping, blocked), size_of::<Blocked>(), usize::MAX),
    (offset_of!(Mapping, orders), size_of::<Order>(), usize::MAX),
];

/// The number of mapped bytes of each part: in this process' mapping, in that of its parent, and in
/// the mapping that a forked child initialises. They grow only in this process' own mapping, which
/// is the only one by then.
static MAPPED: [AtomicUsize; PARTS.len()] = [const { AtomicUsize::new(0) }; PARTS.len()];

// Relaxed throughout: a thread that hands out a piece of a part publishes it, after the part has
// grown.

/// The bytes of a part.
fn whole(part: usize) -> Range<usize> {
    let start = PARTS[part].0;
    let next = PARTS.iter().map(|(start, ..)| *start).filter(|other| *other > start).min();
    start..next.unwrap_or(size_of::<Mapping>())
}

/// The number of the part's elements for which there is memory.
#[inline]
pub fn capacity(part: Part) -> usize {
    MAPPED[part as usize].load(Ordering::Relaxed) / PARTS[part as usize].1
}

/// Whether there is memory for this many elements of the part; grows the part if necessary. Only
/// one thread at a time may do this for a part.
pub fn has(mapping: &Mapping, part: Part, elements: usize) -> bool {
    elements <= capacity(part) || grow(mapping, part, elements)
}

#[cold]
fn grow(mapping: &Mapping, part: Part, elements: usize) -> bool {
    let number = part as usize;
    let (place, mapped) = (whole(number), MAPPED[number].load(Ordering::Relaxed));
    let needed = elements * PARTS[number].1;
    let size = needed.max(2 * mapped).next_multiple_of(PAGE).min(place.len());
    if needed > size {
        return false;
    }
    let address = core::ptr::from_ref(mapping).addr() + place.start;
    // SAFETY: `map` has mapped this much of the part at this address. It grows in its place, or not
    // at all: the kernel only extends it where there is no other mapping.
    let grown = unsafe { asked!(Sysno::mremap, address, mapped, size, 0) };
    let has_grown = Errno::from_ret(grown).is_ok();
    if has_grown {
        MAPPED[number].store(size, Ordering::Relaxed);
    }
    has_grown
}

/// Maps the parts of a new file: as much of each as this process has mapped now, or the usual
/// initial size.
pub fn map(file: usize) -> Result<*mut c_void, Errno> {
    let is_first = MAPPED[Part::Records as usize].load(Ordering::Relaxed) == 0;
    for (number, (_, element, elements)) in PARTS.iter().enumerate() {
        let first = element.saturating_mul(*elements).min(whole(number).len());
        let mapped = MAPPED[number].load(Ordering::Relaxed).max(first.next_multiple_of(PAGE));
        MAPPED[number].store(mapped, Ordering::Relaxed);
    }
    let mut dice = clock::now();
    for _ in 0..TRIES {
        dice = dice.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        let base = FIRST_PLACE + (dice % PLACES) as usize * APART;
        if map_parts(file, base).is_ok() {
            return Ok(core::ptr::with_exposed_provenance_mut(base));
        }
    }
    let whole = map_whole(file)?;
    if is_first {
        for (number, mapped) in MAPPED.iter().enumerate() {
            mapped.store(self::whole(number).len(), Ordering::Relaxed);
        }
    }
    Ok(whole)
}

fn map_parts(file: usize, base: usize) -> Result<(), Errno> {
    for number in 0..PARTS.len() {
        if let Err(error) = map_part(file, base, number) {
            (0..number).for_each(|mapped| unmap_part(base, mapped));
            return Err(error);
        }
    }
    Ok(())
}

fn map_part(file: usize, base: usize, number: usize) -> Result<(), Errno> {
    let (start, size) = (whole(number).start, MAPPED[number].load(Ordering::Relaxed));
    let address = base + start;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: MAP_FIXED_NOREPLACE maps at this address only where nothing is mapped, so that no
    // memory of others changes.
    let mapped =
        unsafe { raw_syscall!(Sysno::mmap, address, size, protection, flags, file, start) };
    match Errno::from_ret(mapped)? {
        there if there == address => Ok(()),
        elsewhere => {
            // A kernel before Linux 4.17 treats the address as a hint. SAFETY: the kernel has just
            // mapped it, and nothing refers to it.
            unsafe { raw_syscall!(Sysno::munmap, elsewhere, size) };
            Err(Errno::EEXIST)
        }
    }
}

fn unmap_part(base: usize, number: usize) {
    let size = MAPPED[number].load(Ordering::Relaxed);
    // SAFETY: `map_part` has mapped this much there, and nothing refers to it: the callers give up
    // an unused mapping.
    unsafe { raw_syscall!(Sysno::munmap, base + whole(number).start, size) };
}

/// Maps the whole file at any free address, if none of the preferred ones is free. A forked child
/// still uses no more of it than its parent had mapped, whose statistics it reads.
fn map_whole(file: usize) -> Result<*mut c_void, Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let size = size_of::<Mapping>();
    // SAFETY: a new mapping at an address that the kernel chooses touches no memory of others.
    let mapped =
        unsafe { raw_syscall!(Sysno::mmap, 0, size, protection, libc::MAP_SHARED, file, 0) };
    Errno::from_ret(mapped).map(core::ptr::with_exposed_provenance_mut)
}

/// Unmaps a mapping that this process does not use, and whose parts are as large as this process'
/// own.
pub fn unmap(mapping: *mut Mapping) {
    (0..PARTS.len()).for_each(|number| unmap_part(mapping.addr(), number));
}
