//! The kernel's locks, represented by ours: semaphores that readers share are `phase-rw`, which
//! spins and then sleeps; mutexes are `futex`; spin locks are `ticket`, like those of Linux 3.19.
//! The waits for each lock are counted, as `lock_stat` counts them.

use std::cell::Cell;

use manycore_sim::thread::{self, Phase};
use manycore_simulated::lock::{Futex, PhaseRw, PlainLock, Ticket};
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_traits::RawRwLock;

use crate::simulated::Window;

/// From where a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// `anon_vma_clone`: links a child's mapping to everything to which its parent's is linked.
    Clone,
    /// `anon_vma_fork`: and to one of its own.
    Fork,
    /// `unlink_anon_vmas`, when it ends.
    Unlink,
    /// `__put_anon_vma`: frees the mapping's own anon_vma when no mapping uses it any more.
    Put,
    /// A walk over the mappings of a page.
    Walk,
    FileMapping,
    Log,
    TaskList,
    RunQueue,
    Fault,
    Map,
    PageTable,
}

impl Site {
    /// In the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Clone,
        Self::Fork,
        Self::Unlink,
        Self::Put,
        Self::Walk,
        Self::FileMapping,
        Self::Log,
        Self::TaskList,
        Self::RunQueue,
        Self::Fault,
        Self::Map,
        Self::PageTable,
    ];

    /// The lock's name; and, of a reader-writer lock, whether it is acquired for reading or
    /// writing.
    pub fn lock(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Clone | Self::Fork | Self::Unlink | Self::Put => ("anon_vma", Some("write")),
            Self::Walk => ("anon_vma", Some("read")),
            Self::FileMapping => ("i_mmap", None),
            Self::Log => ("f_pos_lock", None),
            Self::TaskList => ("tasklist_lock", None),
            Self::RunQueue => ("rq_lock", None),
            Self::Fault => ("mmap_sem", Some("read")),
            Self::Map => ("mmap_sem", Some("write")),
            Self::PageTable => ("page_table_lock", None),
        }
    }

    /// A name where several take the same lock.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Clone => Some("clone"),
            Self::Fork => Some("fork"),
            Self::Unlink => Some("unlink"),
            Self::Put => Some("put"),
            _ => None,
        }
    }
}

/// A thread's counts at a site, outside of simulated memory.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub taken: Cell<u64>,
    pub contended: Cell<u64>,
    /// In cycles.
    pub waited: Cell<u64>,
}

/// The counts of one thread, by the sites' numbers.
#[derive(Debug, Default)]
pub(super) struct Tally([Count; Site::ALL.len()]);

impl Tally {
    pub fn at(&self, site: Site) -> &Count {
        &self.0[site as usize]
    }

    /// Takes a lock in the manner of the kernel: tries, and then waits. Returns how long it waited.
    pub fn take(
        &self,
        site: Site,
        window: Window,
        attempt: impl FnOnce() -> bool,
        wait: impl FnOnce(),
    ) -> u64 {
        let start = thread::now();
        let contended = thread::in_phase(Phase::Lock, || {
            let got = attempt();
            if !got {
                wait();
            }
            !got
        });
        let waited = if contended { thread::now() - start } else { 0 };
        if (window.begin..window.end).contains(&start) {
            let count = self.at(site);
            count.taken.set(count.taken.get() + 1);
            count.contended.set(count.contended.get() + u64::from(contended));
            count.waited.set(count.waited.get() + waited);
        }
        waited
    }
}

/// A cache line.
pub(super) type Line = CachePadded<UnsafeCell<u64>>;

pub(super) fn read(line: &Line) {
    // SAFETY: all simulated threads are one thread of the host, and none stops within this access.
    std::hint::black_box(line.with(|value| unsafe { *value }));
}

pub(super) fn write(line: &Line) {
    // SAFETY: all simulated threads are one thread of the host, and none stops within this access.
    line.with_mut(|value| unsafe { *value += 1 });
}

/// A lock of one of the three kinds.
pub(super) trait Kernel {
    fn attempt(&self) -> bool;
    fn wait(&self);
    /// The lock is held by the caller, for writing.
    fn leave(&self);
}

/// A lock that readers share.
pub(super) type Semaphore = CachePadded<PhaseRw>;
/// A lock whose waiters sleep.
pub(super) type Mutex = CachePadded<Futex>;
/// A lock whose waiters spin.
pub(super) type Spin = CachePadded<Ticket>;

impl Kernel for PhaseRw {
    fn attempt(&self) -> bool {
        self.try_acquire_write()
    }

    fn wait(&self) {
        self.acquire_write();
    }

    fn leave(&self) {
        // SAFETY: the caller holds the lock, for writing: `leave` says so.
        unsafe { self.release_write() };
    }
}

/// The interface of locks that exclude all other threads.
macro_rules! plain {
    ($lock:ident) => {
        impl Kernel for $lock {
            fn attempt(&self) -> bool {
                self.try_acquire()
            }

            fn wait(&self) {
                self.acquire();
            }

            fn leave(&self) {
                // SAFETY: the caller holds the lock, for writing: `leave` says so.
                unsafe { self.release() };
            }
        }
    };
}
plain!(Futex);
plain!(Ticket);
