//! A semaphore for readers and writers as Linux 3.5 had it: its users queue in order of arrival,
//! sleep, and get it from the one that leaves. No user overtakes the queue, and none polls. So all
//! wait while the core of the next user leaves its idle state.

use std::cell::RefCell;
use std::collections::VecDeque;

use manycore_sim::thread;
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use manycore_simulated::sync::futex;

use super::shared::TicketLock;

/// What a user wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    /// What a user adds to the count.
    fn share(self) -> i64 {
        match self {
            Self::Read => 1,
            Self::Write => QUEUE + 1,
        }
    }
}

/// What the count has less while users queue. The rest of it is the number of active users.
const QUEUE: i64 = -(1 << 32);

fn active(count: i64) -> i64 {
    count & 0xffff_ffff
}

/// The semaphore, as `mmap_sem`.
pub(super) struct RwSemaphore {
    line: CachePadded<Line>,
    /// The queue's entries are on the stacks of their threads.
    queue: RefCell<VecDeque<(u32, Access)>>,
    /// By thread: 1 when it has got the semaphore.
    granted: Box<[CachePadded<AtomicU32>]>,
    /// How much longer than in the machine's model a core takes to leave its idle state, in cycles.
    idle_exit: u64,
}

/// Count and lock of the queue share a line.
#[derive(Default)]
struct Line {
    count: AtomicU64,
    lock: TicketLock,
}

impl Line {
    /// Adds to the count; returns what it was.
    fn add(&self, change: i64, order: Ordering) -> i64 {
        self.count.fetch_add(change.cast_unsigned(), order).cast_signed()
    }
}

impl RwSemaphore {
    pub fn new(threads: u32, idle_exit: u64) -> Self {
        Self {
            idle_exit,
            line: CachePadded::default(),
            queue: RefCell::new(VecDeque::with_capacity(threads as usize)),
            granted: (0..threads).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Runs a section with the semaphore held.
    pub fn with(&self, thread: u32, access: Access, section: impl FnOnce()) {
        // Acquire: partner of the Release in `leave`.
        let before = self.line.add(access.share(), Ordering::Acquire);
        let is_free = match access {
            Access::Read => before >= 0,
            Access::Write => before == 0,
        };
        if !is_free {
            self.sleep(thread, access);
        }
        section();
        self.leave(access);
    }

    fn sleep(&self, thread: u32, access: Access) {
        let granted = &self.granted[thread as usize];
        // Relaxed: the lock of the queue orders it.
        granted.store(0, Ordering::Relaxed);
        self.line.lock.locked(|| {
            let is_first = self.queue.borrow().is_empty();
            self.queue.borrow_mut().push_back((thread, access));
            let change = if is_first { QUEUE } else { 0 } - access.share();
            // Acquire: partner of the Release in `leave`.
            let count = self.line.add(change, Ordering::Acquire) + change;
            if active(count) == 0 {
                self.hand_over();
            }
        });
        // Acquire: partner of the Release in `wake`.
        while granted.load(Ordering::Acquire) == 0 {
            futex::wait(granted, 0, None);
        }
        thread::compute(self.idle_exit);
    }

    fn leave(&self, access: Access) {
        // Release: partner of the Acquires of the next users.
        let before = self.line.add(-access.share(), Ordering::Release);
        let count = before - access.share();
        if count < 0 && active(count) == 0 {
            self.line.lock.locked(|| self.hand_over());
        }
    }

    /// Gives the semaphore to the first in the queue: a writer, or all readers before the first
    /// writer. The caller has the lock of the queue.
    fn hand_over(&self) {
        loop {
            let Some((users, access)) = self.next_users() else { return };
            let is_last = users == self.queue.borrow().len();
            let change = access.share() * users as i64 - if is_last { QUEUE } else { 0 };
            // Acquire: partner of the Release in `leave`.
            let before = self.line.add(change, Ordering::Acquire);
            if active(before) == 0 {
                return (0..users).for_each(|_| self.wake());
            }
            // A user that came meanwhile adds its share before it queues. It hands over then.
            // Relaxed: it takes back what was added above, and shows nothing.
            let after = self.line.add(-change, Ordering::Relaxed) - change;
            if active(after) > 0 {
                return;
            }
        }
    }

    /// The number of users that get the semaphore together, and what they want.
    fn next_users(&self) -> Option<(usize, Access)> {
        let queue = self.queue.borrow();
        let (_, access) = *queue.front()?;
        let readers = queue.iter().take_while(|(_, access)| *access == Access::Read).count();
        Some((readers.max(1), access))
    }

    fn wake(&self) {
        let Some((thread, _)) = self.queue.borrow_mut().pop_front() else { return };
        let granted = &self.granted[thread as usize];
        // Release: partner of the Acquire in `sleep`.
        granted.store(1, Ordering::Release);
        futex::wake(&raw const **granted, 1);
    }

    /// Whether no thread has the semaphore or waits for it.
    pub fn is_free(&self) -> bool {
        // Relaxed: all threads have ended.
        self.line.count.load(Ordering::Relaxed) == 0 && self.queue.borrow().is_empty()
    }
}
