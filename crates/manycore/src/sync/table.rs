//! A table of slots of which the whole process has one; threads leave marks in it for others to
//! find.

use super::atomic::AtomicUsize;
use super::{backend, thread, tuning};

/// The slots; free ones are 0.
#[inline]
pub fn slots() -> &'static [AtomicUsize] {
    let slots: &[AtomicUsize] = backend::table::slots();
    &slots[..tuning::places(slots.len())]
}

/// A number for an address; its upper bits differ if addresses do: Fibonacci hashing.
#[inline]
pub fn hash(address: u64) -> u64 {
    // The model checker repeats executions, in which addresses differ.
    let address = if cfg!(loom) { 0 } else { address };
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The slot for the calling thread's mark on the object at this address: always the same, and
/// rarely another thread's.
#[inline]
pub fn slot(address: usize) -> &'static AtomicUsize {
    let slots = slots();
    // Consecutive numbers of threads come far apart.
    let hash = hash((address as u64).rotate_left(32) ^ u64::from(thread::id())) >> 52;
    &slots[hash as usize % slots.len()]
}
