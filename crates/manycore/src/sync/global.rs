//! Parameters of the process.
//!
//! Relaxed throughout: the values are independent of each other and of any other memory, and a
//! thread that sees an older value of one spins a little longer or shorter.

use super::atomic::{AtomicU32, Ordering};
use crate::sync::of_process::OfProcess;

/// A number of the whole process. It is set once at the start, or measured, and only read
/// afterwards.
#[derive(Debug)]
pub struct Global(AtomicU32);

impl Global {
    /// Creates one with an initial value.
    pub const fn new(_parameter: OfProcess, initial: u32) -> Self {
        Self(AtomicU32::new(initial))
    }

    /// The value.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the value.
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// The number of repetitions, if code is repeated only for speed. `usual` where schedules are not
/// explored.
#[inline]
pub fn shortened(usual: u32, _explored: u32) -> u32 {
    usual
}
