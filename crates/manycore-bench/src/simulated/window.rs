//! The counted part of simulated time, and the work of threads in it.

use std::cell::Cell;

use manycore_sim::thread;

/// When counting begins and ends, in cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub begin: u64,
    pub end: u64,
}

impl Window {
    /// A window without limits, for threads that start now and end by themselves.
    pub fn endless(now: u64) -> Self {
        Self { begin: now, end: u64::MAX }
    }
}

/// A thread's number of sections when counting began, and when it ended.
#[derive(Debug, Default)]
pub(crate) struct Count {
    before: Cell<u64>,
    until: Cell<u64>,
}

impl Count {
    /// Notes how many sections there are now.
    pub fn note(&self, window: Window, sections: u64) {
        let now = thread::now();
        if now < window.begin {
            self.before.set(sections);
        }
        if now < window.end {
            self.until.set(sections);
        }
    }

    /// Sections in the time that is counted.
    pub fn counted(&self) -> u64 {
        self.until.get() - self.before.get()
    }
}
