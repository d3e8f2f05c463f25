//! The memory of simulated programs: one region at a fixed address.
//!
//! Allocations of simulated code lie here, and so do its stacks. So an address is the same in every
//! run and every environment. The simulator finds its data about a line by the line's number.
//! Memory elsewhere belongs to the host, and accesses to it cost nothing.
//!
//! There is one arena a process, and so one simulation at a time: [`Lease`] is the right to it.

pub(crate) mod global;
mod heap;
mod in_use;
mod stack;

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub(crate) use in_use::live;

pub(crate) use heap::Heap;
pub(crate) use stack::Stack;

/// The address of the arena. Linux puts nothing there by itself.
const BASE: usize = 0x1000_0000_0000;
/// The size of the arena in address space. A page takes memory only once it is used.
const SIZE: usize = 8 << 30;

/// The start of the stacks, at the arena's upper end.
const STACKS: usize = BASE + SIZE - stack::SIZE * stack::STACKS_MAX;

/// Bytes of a line.
pub(crate) const LINE: usize = 64;
/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// The number of lines.
pub(crate) const LINES: usize = SIZE / LINE;

/// Whether an address lies in the arena.
#[inline]
pub(crate) fn contains(address: usize) -> bool {
    address.wrapping_sub(BASE) < SIZE
}

/// The number of the line that an address is on; none outside the arena.
#[inline]
pub(crate) fn line_of(address: usize) -> Option<u32> {
    contains(address).then(|| ((address - BASE) / LINE) as u32)
}

/// The first address of a line.
pub(crate) fn address_of(line: u32) -> usize {
    BASE + line as usize * LINE
}

/// The right to the arena, and a simulation's part of it.
pub(crate) struct Lease {
    pub(crate) heap: Heap,
    /// The number of earlier simulations.
    pub(crate) epoch: u32,
    arena: MutexGuard<'static, Arena>,
}

struct Arena {
    /// The start of the next simulation's memory, if memory of this one is still in use then.
    start: usize,
    /// The number of stacks that have their guard page.
    guarded: usize,
    epoch: u32,
}

impl Lease {
    /// Waits until no other thread of this process simulates.
    pub(crate) fn take() -> Self {
        static ARENA: Mutex<Arena> = Mutex::new(Arena { start: BASE, guarded: 0, epoch: 0 });
        static MAPPED: OnceLock<()> = OnceLock::new();
        MAPPED.get_or_init(|| {
            let mapped = map(BASE, SIZE).map(|at| at.as_ptr().addr());
            assert!(
                mapped == Some(BASE),
                "no address space for simulated memory: 8 GiB at {BASE:#x} (is there a limit, as by ulimit -v?)"
            );
        });
        // A simulation that panicked has left no change half done here.
        let mut arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(start) = in_use::start() {
            arena.start = start;
        }
        assert!(
            arena.start < BASE + SIZE / 2,
            "too much memory of earlier simulations is still in use"
        );
        arena.epoch += 1;
        Self { heap: Heap::new(arena.start, STACKS), epoch: arena.epoch, arena }
    }

    /// The start of its memory.
    pub(crate) fn start(&self) -> usize {
        self.arena.start
    }

    /// Gives up what this simulation has not freed, after its failure: most of it never will be.
    /// Later simulations begin behind it.
    pub(crate) fn give_up(&mut self) {
        in_use::give_up(start_behind(self.heap.end()));
    }

    /// The stack of a thread.
    pub(crate) fn stack(&mut self, thread: usize) -> Stack {
        Stack::new(thread, &mut self.arena.guarded)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (start, end) = (self.arena.start, self.heap.end());
        if end - start > KEPT && in_use::start().is_some_and(|free| free <= start) {
            // SAFETY: a part of the mapping; no code has allocations in it, and this is the only
            // simulation.
            unsafe { discard(std::ptr::with_exposed_provenance_mut(start), end - start) };
        }
        self.arena.start = start_behind(end);
    }
}

/// Where a simulation begins if memory up to `end` is in use.
fn start_behind(end: usize) -> usize {
    end.next_multiple_of(1 << 20)
}

/// The amount of memory that a simulation may leave dirty for the next one, for the sake of speed.
const KEPT: usize = 16 << 20;

/// Zeroed memory, at the address if that is not 0. It is never unmapped.
pub(crate) fn map(address: usize, size: usize) -> Option<NonNull<u8>> {
    let wanted = std::ptr::with_exposed_provenance_mut(address);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let fixed = if address == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: the mapping replaces no other: at a wanted address that is in use,
    // `MAP_FIXED_NOREPLACE` makes the call fail.
    let mapped = unsafe { libc::mmap(wanted, size, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { None } else { NonNull::new(mapped.cast()) }
}

/// Gives back the memory of a mapping, which then reads as zero.
///
/// # Safety
///
/// A mapping by [`map`], in complete pages, and no code has references into it.
pub(crate) unsafe fn discard(start: *mut u8, size: usize) {
    // SAFETY: `map` has made the mapping; these are whole pages of it, and no code has references
    // into it (contract of this function).
    let result = unsafe { libc::madvise(start.cast(), size, libc::MADV_DONTNEED) };
    assert_eq!(result, 0, "the kernel does not take memory back");
}
