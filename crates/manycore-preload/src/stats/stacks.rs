//! Stacks of calls, each kept once in the mapping.
//!
//! # Without unwinding
//!
//! Unwinding eight calls takes 0.2 us, and a program that makes a lock for each object would pay
//! that a million times. So a thread remembers the positions, on its stack, of the return
//! addresses that it has unwound lately. If a later call comes from the same place, at the same
//! stack depth, and each of these addresses is still at its position, then the thread is in the
//! same calls: each function has a frame of fixed size, so the addresses determine the positions. A
//! function with a frame of variable size (`alloca`) may leave an old address where the newer stack
//! has none; then a lock counts for another path of calls to the same place.

use core::arch::asm;
use core::sync::atomic::{Ordering, compiler_fence};

use manycore_stats::{FRAMES, FRAMES_OF_LOCK, Mapping, RECENT, Recent, STACKS, STACKS_FULL};

use super::index::{Index, key};
use super::modules;
use super::room::{self, Part};
use super::unwind::{self, Frames, Stack};

/// The stacks' numbers.
static NUMBERS: Index<{ 2 * STACKS }> = Index::new();

// Relaxed throughout, unless noted: the number of stacks publishes a stack's data.

/// The number of the stack from `caller` outwards, with at most `depth` calls; 0 if there is no
/// room for it.
///
/// # Panics
///
/// If `depth` is over [`FRAMES`].
pub fn here(mapping: &Mapping, caller: usize, depth: usize) -> u32 {
    number(mapping, &unwind::backtrace(caller, depth).frames)
}

/// The number of the innermost calls of the stack from `caller` outwards: the calls that create a
/// lock.
#[inline(never)]
pub fn of_lock(mapping: &Mapping, caller: usize) -> u32 {
    let Some(slab) = super::slab() else { return here(mapping, caller, FRAMES_OF_LOCK) };
    let end: usize;
    // SAFETY: copies the stack pointer into another register, and accesses no memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, rsp", out(reg) end, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mov {}, sp", out(reg) end, options(nomem, nostack, preserves_flags));
    }
    // The low bits of an address of code differ most; calls of one function are some bytes apart.
    let recent = &slab.recent[(caller ^ (caller >> 5) ^ (end >> 4)) % RECENT];
    if is_same(mapping, recent, caller, end) {
        return recent.stack.load(Ordering::Relaxed);
    }
    let stack = unwind::backtrace(caller, FRAMES_OF_LOCK);
    let number = number(mapping, &stack.frames);
    remember(recent, number, &stack, end);
    number
}

/// Whether the calling thread, whose stack ends there, is in the calls that it has unwound before.
fn is_same(mapping: &Mapping, recent: &Recent, caller: usize, end: usize) -> bool {
    let number = recent.stack.load(Ordering::Relaxed);
    if number == 0
        || recent.caller.load(Ordering::Relaxed) != caller as u64
        || recent.end.load(Ordering::Relaxed) != end as u64
    {
        return false;
    }
    let frames = &mapping.stacks[number as usize % STACKS].frames;
    let count = (recent.frames.load(Ordering::Relaxed) as usize).min(FRAMES_OF_LOCK);
    frames.iter().zip(&recent.places).take(count).all(|(frame, place)| {
        let address = end + place.load(Ordering::Relaxed) as usize;
        // SAFETY: on this thread's stack. The first position has this call's own return address.
        // Each further one is in the frame of the call before it, which was found to be the same,
        // and a frame exists as long as its call.
        frame.load(Ordering::Relaxed) == unsafe { (address as *const u64).read_volatile() }
    })
}

fn remember(recent: &Recent, number: u32, stack: &Stack, end: usize) {
    let places = &stack.places[..stack.found.min(FRAMES_OF_LOCK)];
    let is_near = |place: &usize| place.checked_sub(end).is_some_and(|far| far < FARTHEST);
    // A stack that is kept in part only cannot be compared.
    let is_whole = number != 0 && stack.found > 0 && places.iter().all(is_near);
    // Stored first and last: a signal handler in between finds the old stack, none, or the new one.
    recent.stack.store(0, Ordering::Relaxed);
    // SeqCst, for the compiler only: the stores stay on their sides. Partner: the loads of such a
    // handler, which runs in this thread.
    compiler_fence(Ordering::SeqCst);
    recent.caller.store(stack.frames[0], Ordering::Relaxed);
    recent.end.store(end as u64, Ordering::Relaxed);
    recent.frames.store(places.len() as u32, Ordering::Relaxed);
    for (to, place) in recent.places.iter().zip(places) {
        to.store(place.wrapping_sub(end) as u32, Ordering::Relaxed);
    }
    // SeqCst, for the compiler only: the stores stay on their sides. Partner: the loads of such a
    // handler, which runs in this thread.
    compiler_fence(Ordering::SeqCst);
    recent.stack.store(if is_whole { number } else { 0 }, Ordering::Relaxed);
}

/// A frame that is farther from the end of the stack is not kept.
const FARTHEST: usize = 1 << 20;

/// The number of a stack.
fn number(mapping: &Mapping, frames: &Frames) -> u32 {
    let mut is_new = false;
    let mut append = |frames: &Frames, most| {
        is_new = true;
        append(mapping, frames, most)
    };
    // Where other libraries have been, the same addresses are other calls.
    let of = |frames: &Frames| key(frames.iter().copied().chain([modules::salt(mapping, frames)]));
    let full = NUMBERS.number(of(frames), || append(frames, STACKS_FULL));
    let number = full.unwrap_or_else(|| {
        mapping.header.cut.fetch_add(1, Ordering::Relaxed);
        let mut innermost = [0; FRAMES];
        innermost[0] = frames[0];
        NUMBERS.number(of(&innermost), || append(&innermost, STACKS)).unwrap_or(0)
    });
    if is_new {
        modules::note(mapping, frames);
    }
    number
}

/// Adds a stack, unless there are `most` stacks already. The caller has locked the index.
fn append(mapping: &Mapping, frames: &Frames, most: usize) -> Option<u32> {
    let number = mapping.header.stacks.load(Ordering::Relaxed);
    let stack = mapping.stacks.get(number as usize).filter(|_| (number as usize) < most)?;
    if !room::has(mapping, Part::Stacks, number as usize + 1) {
        return None;
    }
    for (place, frame) in stack.frames.iter().zip(frames) {
        place.store(*frame, Ordering::Relaxed);
    }
    stack.epoch.store(modules::epoch(), Ordering::Relaxed);
    // Release: partner of the command's Acquire; a thread that sees the number sees the frames.
    mapping.header.stacks.store(number + 1, Ordering::Release);
    Some(number)
}

/// Called in the child of a fork: copies the stacks to its own mapping.
pub fn forked(old: &Mapping, new: &Mapping) {
    NUMBERS.forked();
    // Acquire: partner of the Release in `append`. The parent may have kept more of them since, in
    // memory that this process does not have.
    let kept = old.header.stacks.load(Ordering::Acquire);
    let kept = kept.min(room::capacity(Part::Stacks) as u32);
    for (from, to) in old.stacks.iter().zip(new.stacks.iter()).take(kept as usize) {
        to.epoch.store(from.epoch.load(Ordering::Relaxed), Ordering::Relaxed);
        for (from, to) in from.frames.iter().zip(&to.frames) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    // Release: partner of the command's Acquire, as in `append`.
    new.header.stacks.store(kept, Ordering::Release);
}
