//! The smallest facade that a program needs.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use manycore_sim::backend;

/// A word on a line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Word(AtomicU32);

impl Word {
    pub fn address(&self) -> usize {
        (&raw const self.0).addr()
    }

    pub fn load(&self) -> u32 {
        backend::load(self.address());
        self.0.load(Relaxed)
    }

    pub fn store(&self, value: u32) {
        backend::store(self.address());
        self.0.store(value, Relaxed);
    }

    pub fn swap(&self, value: u32) -> u32 {
        backend::rmw(self.address());
        self.0.swap(value, Relaxed)
    }

    pub fn add(&self, value: u32) -> u32 {
        backend::rmw(self.address());
        self.0.fetch_add(value, Relaxed)
    }

    pub fn wait(&self, expected: u32, until: Option<u64>) -> bool {
        backend::futex_wait(self.address(), || self.0.load(Relaxed) == expected, until)
    }

    pub fn wake(&self, count: u32) {
        backend::futex_wake(self.address(), count);
    }

    pub fn spin_until(&self, value: u32) {
        while self.load() != value {
            backend::spin_loop();
        }
    }
}
