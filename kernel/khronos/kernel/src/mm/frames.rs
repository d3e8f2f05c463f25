//! Frames of 4 KB: a buddy allocator behind lists of each CPU; and their reference counts.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::direct_map::{self, physical};
use crate::arch::{boot, cpu};
use crate::sync::once::Once;
use crate::sync::order::Rank;
use crate::sync::pin::with_interrupts_off;
use crate::sync::spin::IrqSpin;
use crate::watch::counters::{Event, count};

/// Bytes of a frame.
pub const BYTES: usize = 4096;
/// The largest piece is of 2^14 frames: 64 MB.
const ORDERS: usize = 15;
/// The first megabyte is firmware's, and holds the trampoline.
const LOWEST: u64 = 1 << 20;

/// The data about a frame, on a line of its own, because adjacent frames may belong to two CPUs.
#[repr(align(64))]
struct Info {
    /// References, while it is in use.
    references: AtomicU32,
    /// For the first frame of a free piece: the order of the piece, plus one.
    free: AtomicU8,
}

static INFOS: Once<&'static [Info]> = Once::new();

fn info(number: u64) -> &'static Info {
    &INFOS.get()[number as usize]
}

/// The links of a free piece, which are in its own first words.
#[derive(Clone, Copy)]
struct Links {
    next: u64,
    previous: u64,
}

/// No frame: number 0 is never free.
const NONE: u64 = 0;

struct Buddy {
    heads: [u64; ORDERS],
    free: u64,
}

static BUDDY: IrqSpin<Buddy> = IrqSpin::new(Rank::Frames, Buddy { heads: [NONE; ORDERS], free: 0 });
static TOTAL: AtomicU64 = AtomicU64::new(0);

fn links(number: u64) -> *mut Links {
    physical(number * BYTES as u64).cast()
}

impl Buddy {
    fn push(&mut self, number: u64, order: usize) {
        let head = self.heads[order];
        // SAFETY: the allocator's lock is held; the piece is free, as is the head of the list, and
        // free memory belongs to the allocator.
        unsafe {
            links(number).write(Links { next: head, previous: NONE });
            if head != NONE {
                (*links(head)).previous = number;
            }
        }
        self.heads[order] = number;
        info(number).free.store(order as u8 + 1, Ordering::Relaxed); // Relaxed: under the lock
    }

    fn unlink(&mut self, number: u64, order: usize) {
        // SAFETY: the piece is in the list of this order, and so are its neighbours.
        unsafe {
            let Links { next, previous } = links(number).read();
            if previous == NONE {
                self.heads[order] = next;
            } else {
                (*links(previous)).next = next;
            }
            if next != NONE {
                (*links(next)).previous = previous;
            }
        }
        info(number).free.store(0, Ordering::Relaxed); // Relaxed: under the lock
    }

    fn take(&mut self, order: usize) -> Option<u64> {
        let from = (order..ORDERS).find(|&from| self.heads[from] != NONE)?;
        let number = self.heads[from];
        self.unlink(number, from);
        for half in (order..from).rev() {
            self.push(number + (1 << half), half);
        }
        self.free -= 1 << order;
        Some(number)
    }

    fn give(&mut self, mut number: u64, mut order: usize) {
        self.free += 1 << order;
        while order + 1 < ORDERS {
            let buddy = number ^ 1 << order;
            let is_free = INFOS.get().get(buddy as usize).is_some_and(|info| {
                info.free.load(Ordering::Relaxed) == order as u8 + 1 // Relaxed: under the lock
            });
            if !is_free {
                break;
            }
            self.unlink(buddy, order);
            number &= !(1 << order);
            order += 1;
        }
        self.push(number, order);
    }
}

const CACHED: usize = 128;
const BATCH: usize = 64;

/// A CPU's free frames.
pub struct FrameCache {
    numbers: [u32; CACHED],
    count: usize,
}

impl Default for FrameCache {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameCache {
    /// None.
    pub const fn new() -> Self {
        Self { numbers: [0; CACHED], count: 0 }
    }

    fn take(&mut self) -> Option<u64> {
        if self.count == 0 {
            let mut buddy = BUDDY.lock();
            while self.count < BATCH {
                let Some(number) = buddy.take(0) else { break };
                self.numbers[self.count] = number as u32;
                self.count += 1;
            }
        }
        self.count = self.count.checked_sub(1)?;
        Some(u64::from(self.numbers[self.count]))
    }

    fn give(&mut self, number: u64) {
        if self.count == CACHED {
            let mut buddy = BUDDY.lock();
            for _ in 0..BATCH {
                self.count -= 1;
                buddy.give(u64::from(self.numbers[self.count]), 0);
            }
        }
        self.numbers[self.count] = number as u32;
        self.count += 1;
    }
}

fn with_cache<R>(run: impl FnOnce(&mut FrameCache) -> R) -> R {
    // SAFETY: the CPU's own, with interrupts off: nothing else uses it meanwhile.
    with_interrupts_off(|| run(unsafe { &mut *cpu::this().frames.get() }))
}

/// Takes a piece of 2^order frames; returns its physical address. The piece is not zeroed.
pub fn take(order: usize) -> Option<u64> {
    let number = if order == 0 {
        with_cache(FrameCache::take)
    } else if order < ORDERS {
        BUDDY.lock().take(order)
    } else {
        None
    };
    number.map(|number| number * BYTES as u64)
}

/// Gives a piece back.
///
/// # Safety
///
/// The piece came from [`take`] with the same order, and no code uses it any more.
pub unsafe fn give(address: u64, order: usize) {
    let number = address / BYTES as u64;
    if order == 0 {
        with_cache(|cache| cache.give(number));
    } else {
        BUDDY.lock().give(number, order);
    }
}

/// The number of free frames, without those in CPUs' lists; and the number of all frames.
pub fn free_and_total() -> (u64, u64) {
    (BUDDY.lock().free, TOTAL.load(Ordering::Relaxed)) // Relaxed: constant since boot
}

/// A counted reference to a frame in use.
#[derive(Debug)]
pub struct Frame(u64);

impl Frame {
    /// A zeroed frame, if there is one.
    pub fn zeroed() -> Option<Self> {
        let frame = Self::uninit()?;
        // SAFETY: the frame is new, and no other thread has it.
        unsafe { frame.bytes().write_bytes(0, BYTES) };
        Some(frame)
    }

    /// A frame with a copy of another's bytes.
    pub fn copy_of(other: &Frame) -> Option<Self> {
        let frame = Self::uninit()?;
        // SAFETY: the frame is new, and not shared; the other one is in use.
        unsafe { frame.bytes().copy_from_nonoverlapping(other.bytes(), BYTES) };
        Some(frame)
    }

    fn uninit() -> Option<Self> {
        let address = take(0)?;
        info(address / BYTES as u64).references.store(1, Ordering::Relaxed); // Relaxed: not shared
        count(Event::FramesTaken);
        Some(Self(address))
    }

    /// Its physical address.
    pub fn address(&self) -> u64 {
        self.0
    }

    /// Its bytes.
    pub fn bytes(&self) -> *mut u8 {
        physical(self.0)
    }

    /// Whether this is the only reference.
    pub fn is_only(&self) -> bool {
        // Acquire: partner of the Release in `drop`: the other users' accesses are over.
        info(self.0 / BYTES as u64).references.load(Ordering::Acquire) == 1
    }

    /// The address for a page table, which then owns the reference. Pass it to [`from_raw`] later.
    ///
    /// [`from_raw`]: Self::from_raw
    pub fn into_raw(self) -> u64 {
        core::mem::ManuallyDrop::new(self).0
    }

    /// The reference that was made an address.
    ///
    /// # Safety
    ///
    /// By [`into_raw`](Self::into_raw), and it was not taken back since.
    pub unsafe fn from_raw(address: u64) -> Self {
        Self(address)
    }
}

impl Clone for Frame {
    fn clone(&self) -> Self {
        // Relaxed: a reference is there already.
        info(self.0 / BYTES as u64).references.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // AcqRel: the last one sees the actions of all others; partner of itself and of `is_only`.
        let before = info(self.0 / BYTES as u64).references.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "a frame is released more often than taken");
        if before == 1 {
            // SAFETY: it came from `take(0)`, and this was the last reference.
            unsafe { give(self.0, 0) };
        }
    }
}

unsafe extern "C" {
    static image_end: u8;
}

/// Takes over all memory that the firmware calls usable, except the parts in use: the first
/// megabyte, the kernel's image, the modules, and the table of frames itself.
///
/// # Panics
///
/// If there is too little memory for that table.
pub fn start() {
    let information = boot::information();
    let memory = information.memory.as_slice();
    let end = memory.iter().map(|range| range.end).max().unwrap_or(0);
    let frames = end / BYTES as u64;
    let infos_bytes = frames * size_of::<Info>() as u64;
    let image_ends = direct_map::address_of(&raw const image_end);
    let modules = information.modules.as_slice();
    let mut taken = [boot::Range::default(); MOST_TAKEN];
    taken[0] = boot::Range { start: 0, end: LOWEST };
    taken[1] = boot::Range { start: 2 << 20, end: image_ends };
    let modules = &modules[..modules.len().min(MOST_TAKEN - 3)];
    taken[3..3 + modules.len()].copy_from_slice(modules);
    let taken = &mut taken[..3 + modules.len()];
    let place = find_place(memory, taken, infos_bytes).expect("memory for the table of frames");
    taken[2] = boot::Range { start: place, end: place + infos_bytes };
    // SAFETY: usable memory that nothing else is in, mapped, and zeros are `Info`s.
    let infos = unsafe {
        physical(place).write_bytes(0, infos_bytes as usize);
        core::slice::from_raw_parts(physical(place).cast::<Info>(), frames as usize)
    };
    INFOS.set(infos);
    for range in memory {
        give_range(*range, taken);
    }
}

/// The most ranges in use at boot: three of ours, and modules.
const MOST_TAKEN: usize = 64 + 3;

/// Finds room for this many bytes, in usable memory that boot.s has mapped, outside of the ranges
/// in use. It begins where one of these ends.
fn find_place(memory: &[boot::Range], taken: &[boot::Range], bytes: u64) -> Option<u64> {
    let ends = taken.iter().map(|by| by.end.next_multiple_of(BYTES as u64));
    let is_right = |&start: &u64| {
        let end = start + bytes;
        end <= 4 << 30
            && memory.iter().any(|range| range.start <= start && end <= range.end)
            && !taken.iter().any(|by| by.start < end && start < by.end)
    };
    ends.filter(is_right).min()
}

/// Gives the memory outside of the used ranges to the allocator, in the largest pieces that fit.
fn give_range(range: boot::Range, taken: &[boot::Range]) {
    let size = BYTES as u64;
    let mut at = range.start.next_multiple_of(size);
    while at + size <= range.end {
        if let Some(by) = taken.iter().find(|by| by.start < at + size && at < by.end) {
            at = by.end.next_multiple_of(size);
            continue;
        }
        let next = taken.iter().map(|by| by.start).filter(|&start| start > at).min();
        let end = next.unwrap_or(u64::MAX).min(range.end);
        let room = (end - at) / size;
        let order = (at / size).trailing_zeros().min(room.max(1).ilog2()).min(ORDERS as u32 - 1);
        // A piece that is at least `at`'s alignment; taken whole.
        BUDDY.lock().give(at / size, order as usize);
        TOTAL.fetch_add(1 << order, Ordering::Relaxed); // Relaxed: one CPU runs
        at += size << order;
    }
}
