//! Lines of persistent memory.

use manycore_sim::backend;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};

/// Words of a line.
pub const WORDS: usize = 8;

/// Bytes of a line.
pub const LINE: usize = 8 * WORDS;

/// A line of memory.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Line(pub [AtomicU64; WORDS]);

impl Line {
    /// Lines of zeros.
    pub fn zeros(count: usize) -> Box<[Self]> {
        (0..count).map(|_| Self::default()).collect()
    }

    /// What it has.
    pub fn words(&self) -> [u64; WORDS] {
        // Relaxed: the caller ensures that no thread writes.
        std::array::from_fn(|word| self.0[word].load(Ordering::Relaxed))
    }
}

/// What makes lines safe.
pub trait Persistence: Default + Send + Sync + 'static {
    /// Writes a line back, and goes on.
    fn write_back(&self, line: &Line);

    /// Returns when all lines are safe that this thread has written back.
    fn wait(&self);
}

/// The persistent memory of the simulated machine; on the host, it costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulated;

impl Persistence for Simulated {
    #[inline]
    fn write_back(&self, line: &Line) {
        backend::write_back(std::ptr::from_ref(line).addr());
    }

    #[inline]
    fn wait(&self) {
        backend::wait_until_safe();
    }
}
