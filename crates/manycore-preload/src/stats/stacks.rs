//! Stacks of calls, each kept once in the mapping.

use core::sync::atomic::Ordering;

use manycore_profile::layout::{FRAMES, Mapping, STACKS, STACKS_FULL};

use super::index::{Index, key};
use super::modules;
use super::unwind::{self, Frames};

/// The stacks' numbers.
static NUMBERS: Index<{ 2 * STACKS }> = Index::new();

// Relaxed throughout, unless noted: what makes up a stack is published by the number of stacks.

/// The number of the stack from `caller` outwards, of at most so many calls; 0 if there is no room for it.
///
/// # Panics
///
/// If `depth` is over [`FRAMES`].
pub fn here(mapping: &Mapping, caller: usize, depth: usize) -> u32 {
    number(mapping, &unwind::backtrace(caller, depth))
}

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

/// Adds a stack, unless there are as many as `most`. One at a time: the caller has the index locked.
fn append(mapping: &Mapping, frames: &Frames, most: usize) -> Option<u32> {
    let number = mapping.header.stacks.load(Ordering::Relaxed);
    let stack = mapping.stacks.get(number as usize).filter(|_| (number as usize) < most)?;
    for (place, frame) in stack.frames.iter().zip(frames) {
        place.store(*frame, Ordering::Relaxed);
    }
    stack.epoch.store(modules::epoch(), Ordering::Relaxed);
    // Release: partner of the command's Acquire; whoever sees the number sees the frames.
    mapping.header.stacks.store(number + 1, Ordering::Release);
    Some(number)
}

/// In the child of a fork: the same stacks, in a mapping of its own.
pub fn forked(old: &Mapping, new: &Mapping) {
    NUMBERS.forked();
    // Acquire: as the command's.
    let kept = old.header.stacks.load(Ordering::Acquire);
    for (from, to) in old.stacks.iter().zip(&new.stacks).take(kept as usize) {
        to.epoch.store(from.epoch.load(Ordering::Relaxed), Ordering::Relaxed);
        for (from, to) in from.frames.iter().zip(&to.frames) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    // Release: as in `append`.
    new.header.stacks.store(kept, Ordering::Release);
}
