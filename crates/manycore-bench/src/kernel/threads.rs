//! SPECjbb2013 in one Java machine: threads that share an address space. Page faults read the
//! mappings, and threads that map memory write them.

use manycore_sim::thread;
use manycore_simulated::lock::Ticket;
use manycore_simulated::sync::CachePadded;
use manycore_traits::RawRwLock;

use super::locks::{Kernel, Line, Semaphore, Site, Spin, Tally, read, write};
use super::numbers::Numbers;
use super::run_queues::RunQueues;
use crate::simulated::Window;

/// The number of lines of the tree of mappings that a page fault reads, and that a change may
/// write.
const MAPPINGS: usize = 8;

/// The address space.
pub(super) struct Space<'a> {
    numbers: &'a Numbers,
    ghz: f64,
    window: Window,
    threads: u32,
    semaphore: Semaphore,
    mappings: Vec<Line>,
    tables: Vec<(Spin, Line)>,
}

impl<'a> Space<'a> {
    pub fn new(numbers: &'a Numbers, ghz: f64, window: Window, threads: u32) -> Self {
        let table = |_| (CachePadded(Ticket::new()), Line::default());
        Self {
            numbers,
            ghz,
            window,
            threads,
            semaphore: CachePadded(RawRwLock::new()),
            mappings: (0..MAPPINGS).map(|_| Line::default()).collect(),
            tables: (0..numbers.count("regions")).map(table).collect(),
        }
    }

    fn compute(&self, ns: f64) {
        thread::compute((ns * self.ghz) as u64);
    }

    /// The kernel's part of a request: its page faults, with a part of the request's computation
    /// between two of them, and sometimes a change of the mappings.
    pub fn operation(
        &self,
        me: u32,
        tally: &Tally,
        threads: &RunQueues,
        random: &mut fastrand::Rng,
        computation: u64,
    ) {
        let faults = self.numbers.count("faults");
        for _ in 0..faults {
            thread::compute(computation / faults as u64);
            self.fault(me, tally, threads, random);
            if random.f64() * self.numbers.get("faults_per_map") < 1.0 {
                self.map(me, tally, threads, random);
            }
        }
        let wake_ups = self.numbers.get("wake_ups") as usize;
        (0..wake_ups).for_each(|_| threads.wake_up(random, me, tally));
    }

    fn fault(&self, me: u32, tally: &Tally, threads: &RunQueues, random: &mut fastrand::Rng) {
        let semaphore = &*self.semaphore;
        let waited = tally.take(
            Site::Fault,
            self.window,
            || semaphore.try_acquire_read(),
            || semaphore.acquire_read(),
        );
        // Down the tree to the heap.
        (0..MAPPINGS.ilog2()).for_each(|_| read(&self.mappings[random.usize(..MAPPINGS)]));
        let in_table = self.numbers.get("pte_ns");
        self.compute((self.numbers.get("fault_ns") - in_table).max(0.0));
        // Threads allocate from pieces of the heap that lie beside each other.
        let (table, line) = &self.tables[me as usize * self.tables.len() / self.threads as usize];
        tally.take(Site::PageTable, self.window, || table.attempt(), || table.wait());
        write(line);
        self.compute(in_table);
        table.leave();
        // SAFETY: `take` has acquired the semaphore for reading, in this thread.
        unsafe { semaphore.release_read() };
        threads.after_wait(waited, me, tally);
    }

    fn map(&self, me: u32, tally: &Tally, threads: &RunQueues, random: &mut fastrand::Rng) {
        let semaphore = &*self.semaphore;
        let waited =
            tally.take(Site::Map, self.window, || semaphore.attempt(), || semaphore.wait());
        write(&self.mappings[random.usize(..MAPPINGS)]);
        self.compute(self.numbers.get("map_ns"));
        semaphore.leave();
        threads.after_wait(waited, me, tally);
    }

    /// The time of a request without any waits and without its computation, in nanoseconds.
    pub fn own_ns(numbers: &Numbers) -> f64 {
        let faults = numbers.count("faults") as f64;
        let maps = faults / numbers.get("faults_per_map").max(1.0);
        faults * numbers.get("fault_ns")
            + maps * numbers.get("map_ns")
            + numbers.get("wake_ups") * numbers.get("switch_ns")
    }
}
