//! The scheduler's locks: what a wake-up and a long wait cost.

use manycore_sim::thread;
use manycore_simulated::lock::Ticket;
use manycore_simulated::sync::CachePadded;

use super::locks::{Kernel, Line, Site, Spin, Tally, write};
use super::numbers::Numbers;
use crate::simulated::Window;

/// The run queues: one for each CPU, and so one for each thread.
pub(super) struct RunQueues<'a> {
    numbers: &'a Numbers,
    ghz: f64,
    window: Window,
    queues: Vec<(Spin, Line)>,
}

impl<'a> RunQueues<'a> {
    pub fn new(numbers: &'a Numbers, ghz: f64, window: Window, threads: u32) -> Self {
        let queue = |_| (CachePadded(Ticket::new()), Line::default());
        Self { numbers, ghz, window, queues: (0..threads).map(queue).collect() }
    }

    fn cycles(&self, name: &str) -> u64 {
        (self.numbers.get(name) * self.ghz) as u64
    }

    fn queue(&self, number: usize, cycles: u64, tally: &Tally) {
        let (lock, line) = &self.queues[number];
        tally.take(Site::RunQueue, self.window, || lock.attempt(), || lock.wait());
        write(line);
        thread::compute(cycles);
        lock.leave();
    }

    /// Puts a thread on some queue.
    pub fn wake_up(&self, random: &mut fastrand::Rng, me: u32, tally: &Tally) {
        let switch = self.cycles("switch_ns");
        self.queue(random.usize(..self.queues.len()), switch, tally);
        self.queue(me as usize, switch, tally);
    }

    /// Models the effect of a wait for a semaphore. It is called after the semaphore's release, so
    /// the following accesses are in no section. A long wait took the thread off its CPU: it left
    /// the run queue and came back. In a longer wait, its CPU has searched the busiest queue for
    /// another thread.
    pub fn after_wait(&self, waited: u64, me: u32, tally: &Tally) {
        if waited <= self.cycles("sleeps_after_ns") {
            return;
        }
        let switch = self.cycles("switch_ns");
        self.queue(me as usize, switch, tally);
        if waited > self.cycles("balances_after_ns") {
            let ticks = thread::now() / self.cycles("tick_ns").max(1);
            // Any odd multiplier leads from one tick to a queue elsewhere.
            let busiest = ticks.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let balance = self.cycles("balance_ns");
            self.queue(busiest as usize % self.queues.len(), balance, tally);
        }
        self.queue(me as usize, switch, tally);
    }
}
