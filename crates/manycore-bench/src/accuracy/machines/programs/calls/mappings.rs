//! Threads of one process map memory, touch it and unmap it, as Linux 3.5 does it: mappings change
//! under the process' semaphore, held to write, and page faults hold it to read.
//!
//! An unmapping interrupts all CPUs that run a thread of the process. The sender pays for each; the
//! time that the others lose is not simulated, as they wait anyway.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};
use manycore_simulated::sync::hint;

use super::rw_semaphore::{Access, RwSemaphore};
use super::shared::{Part, Shared, TicketLock};

/// Who touches the pages that a thread maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// The thread itself.
    Own,
    /// The thread, and then the next one, which unmaps them.
    Passed,
}

/// What a page fault takes beside the lock of its page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Faults {
    /// The semaphore.
    Semaphore,
    /// Nothing, as in the Bonsai tree's kernel.
    Nothing,
}

/// The shares of a mapping, a page fault and an unmapping in the computation of all three.
const MAP: f64 = 0.32;
const FAULT: f64 = 0.36;
const UNMAP: f64 = 0.32;

/// What a CPU does to interrupt another, and the time until the last one has answered.
const SEND: f64 = 0.06;
const ANSWER: f64 = 0.3;

/// The mappings of a process.
pub(super) struct Mappings {
    pattern: Pattern,
    faults: Faults,
    semaphore: RwSemaphore,
    /// The lock of the last level of page tables, which all pages are in.
    table: CachePadded<TicketLock>,
    /// The root of the tree of mappings, and the number of mapped pages, on two lines.
    tree: CachePadded<AtomicU64>,
    pages: CachePadded<AtomicU64>,
    /// By thread: a page that it has to unmap, plus 1.
    passed: Box<[CachePadded<AtomicU64>]>,
    /// The number of threads that do not sleep.
    running: Cell<u32>,
}

impl Mappings {
    pub fn new(threads: u32, pattern: Pattern, faults: Faults, idle_exit: u64) -> Self {
        Self {
            pattern,
            faults,
            semaphore: RwSemaphore::new(threads, idle_exit),
            table: CachePadded::default(),
            tree: CachePadded::default(),
            pages: CachePadded::default(),
            passed: (0..threads).map(|_| CachePadded::default()).collect(),
            running: Cell::new(threads),
        }
    }

    fn threads(&self) -> u32 {
        self.passed.len() as u32
    }

    /// Runs a section under the semaphore.
    fn with(&self, me: u32, access: Access, section: impl FnOnce()) {
        self.running.update(|running| running - 1);
        self.semaphore.with(me, access, || {
            self.running.update(|running| running + 1);
            section();
            self.running.update(|running| running - 1);
        });
        self.running.update(|running| running + 1);
    }

    /// Adds a mapping of this many pages to the tree, or takes it away.
    fn change(&self, me: u32, pages: i64, work: &dyn Fn(f64), share: f64) {
        self.with(me, Access::Write, || {
            work(share);
            for word in [&self.tree, &self.pages] {
                // Relaxed: the semaphore orders it.
                let value = word.load(Ordering::Relaxed);
                // Release: partner of the Acquire in `fault`.
                word.store(value.wrapping_add_signed(pages), Ordering::Release);
            }
            let others = self.running.get().saturating_sub(1);
            if pages < 0 && others > 0 {
                work(f64::from(others) * SEND + ANSWER);
            }
        });
    }

    fn map(&self, me: u32, pages: u64, work: &dyn Fn(f64)) {
        self.change(me, pages as i64, work, MAP);
    }

    fn unmap(&self, me: u32, pages: u64, work: &dyn Fn(f64)) {
        self.change(me, -(pages as i64), work, UNMAP);
    }

    /// The first access to a page.
    fn fault(&self, me: u32, work: &dyn Fn(f64)) {
        let enter_page = || {
            // Acquire: partner of the stores under the semaphore, which a fault may not hold.
            self.tree.load(Ordering::Acquire);
            work(0.9 * FAULT);
            self.table.locked(|| work(0.1 * FAULT));
        };
        match self.faults {
            Faults::Semaphore => self.with(me, Access::Read, enter_page),
            Faults::Nothing => enter_page(),
        }
    }

    /// Passes a page to the next thread, and unmaps that of the one before.
    fn pass(&self, me: u32, end: u64, work: &dyn Fn(f64)) -> u64 {
        self.map(me, 1, work);
        self.fault(me, work);
        let [to, from] =
            [(me + 1) % self.threads(), me].map(|thread| &self.passed[thread as usize]);
        let wait = |word: &AtomicU64, until: u64| {
            // Acquire: partner of the Releases below.
            while word.load(Ordering::Acquire) != until && thread::now() < end {
                hint::spin_loop();
            }
        };
        wait(to, 0);
        // Release: partner of the Acquire above.
        to.store(1, Ordering::Release);
        wait(from, 1);
        from.store(0, Ordering::Release);
        self.unmap(me, 1, work);
        2
    }
}

impl Shared for Mappings {
    fn knows(&self, part: Part) -> bool {
        part == Part::Map
    }

    fn map_and_unmap(&self, me: u32, end: u64, work: &dyn Fn(f64)) -> u64 {
        match self.pattern {
            Pattern::Own => {
                self.map(me, 1, work);
                self.fault(me, work);
                self.unmap(me, 1, work);
                1
            }
            Pattern::Passed => self.pass(me, end, work),
        }
    }

    fn verify(&self) -> Result<(), String> {
        match self.semaphore.is_free() {
            true => Ok(()),
            false => Err("a thread has left without the semaphore".to_owned()),
        }
    }
}
