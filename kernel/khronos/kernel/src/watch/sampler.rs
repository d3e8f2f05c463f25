//! The sampling profiler: the position of each CPU at its ticks, a hundred times a second.
//! `/proc/samples` has the samples since it was read last.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::cpu;
use crate::arch::frame::Frame;

/// Samples of a CPU that are kept: the latest.
const MOST: usize = 512;

/// A CPU's samples, in a ring.
#[repr(align(128))]
struct Ring {
    addresses: [AtomicU64; MOST],
    written: AtomicU64,
    taken: AtomicU64,
}

static RINGS: [Ring; cpu::MOST] = [const {
    Ring {
        addresses: [const { AtomicU64::new(0) }; MOST],
        written: AtomicU64::new(0),
        taken: AtomicU64::new(0),
    }
}; cpu::MOST];

/// A tick has interrupted the code of this frame.
pub fn tick(frame: &Frame) {
    let ring = &RINGS[cpu::number() as usize];
    let number = ring.written.load(Ordering::Relaxed); // Relaxed: the CPU's own
    ring.addresses[number as usize % MOST].store(frame.rip, Ordering::Relaxed); // published below
    ring.written.store(number + 1, Ordering::Release); // Release: partner of the Acquire in `take`
}

/// Calls `f` with each sample since the last call: the CPU, and the address of the code. A sample
/// that is overwritten meanwhile is replaced by a newer one.
pub fn take(mut f: impl FnMut(usize, u64)) {
    for cpu in cpu::all() {
        let ring = &RINGS[cpu.number()];
        let end = ring.written.load(Ordering::Acquire); // Acquire: partner of `tick`'s Release
        let start = ring.taken.swap(end, Ordering::Relaxed); // Relaxed: a number
        for number in start.max(end.saturating_sub(MOST as u64))..end {
            // Relaxed: published by `written`
            f(cpu.number(), ring.addresses[number as usize % MOST].load(Ordering::Relaxed));
        }
    }
}
