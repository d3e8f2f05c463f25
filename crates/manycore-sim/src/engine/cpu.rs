//! A CPU, with its queue of threads.

use std::collections::VecDeque;

use super::thread::ThreadId;
use crate::machine::Cycles;

pub(crate) struct Cpu {
    /// The CPU's present time.
    pub(crate) clock: Cycles,
    /// The thread that it runs; `None` if it is idle.
    pub(crate) current: Option<ThreadId>,
    /// The threads that wait for it.
    pub(crate) queue: VecDeque<ThreadId>,
    /// The time at which the current thread got it.
    pub(crate) slice_start: Cycles,
    /// The time at which the current thread has to let another run; never while no thread waits.
    pub(crate) slice_end: Cycles,
    /// Whether this simulation uses it.
    pub(crate) allowed: bool,
    pub(crate) core: u32,
    /// The times at which pending stores will be done, the oldest first.
    pub(crate) stores: VecDeque<Cycles>,
}

impl Cpu {
    pub(crate) fn new(core: u32, store_buffer: u32) -> Self {
        Self {
            clock: 0,
            current: None,
            queue: VecDeque::new(),
            slice_start: 0,
            slice_end: Cycles::MAX,
            allowed: false,
            core,
            stores: VecDeque::with_capacity(store_buffer as usize + 1),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none() && self.queue.is_empty()
    }

    /// Adds a pending store that will be done at `done`; returns until when the core has to wait
    /// for a free buffer entry.
    pub(crate) fn buffer_store(&mut self, done: Cycles, places: u32) -> Cycles {
        // Stores become visible in order.
        let done = done.max(self.stores.back().copied().unwrap_or(0));
        while self.stores.front().is_some_and(|first| *first <= self.clock) {
            self.stores.pop_front();
        }
        self.stores.push_back(done);
        if self.stores.len() > places as usize {
            self.stores.pop_front().unwrap_or(self.clock)
        } else {
            self.clock
        }
    }

    /// The time at which all pending stores will be done.
    pub(crate) fn drained(&mut self) -> Cycles {
        let last = self.stores.back().copied().unwrap_or(0);
        self.stores.clear();
        last.max(self.clock)
    }
}
