//! A record in which a thread publishes a section, and learns that the section has run.

use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, futex, order};

/// No thread has it.
const FREE: u32 = 0;
/// A thread has claimed it to publish a section, or a combiner to remove it from the list.
const CLAIMED: u32 = 1;
/// There is a section in it, to be run.
const PENDING: u32 = 2;
/// The same, and its thread sleeps.
const PENDING_ASLEEP: u32 = 3;
/// The section has run, and the record is its thread's again.
const DONE: u32 = 4;

/// A section without its type: the function to call with it and the data.
pub(super) struct Job<T> {
    pub run: unsafe fn(*mut (), *mut T),
    pub section: *mut (),
}

/// The record. All zero is a free one that is not listed.
pub(super) struct Record<T> {
    state: AtomicU32,
    /// The next on the list, see [`List`](super::list::List).
    pub next: AtomicU32,
    /// Whether it is on the list; the thread that has claimed it reads and writes this.
    listed: AtomicBool,
    /// The combiner's last pass in which it was used; combiners read and write this.
    pub last_use: AtomicU32,
    job: UnsafeCell<Option<Job<T>>>,
}

impl<T> Record<T> {
    const_new! {
        pub(super) fn new() -> Self {
            Self {
                state: AtomicU32::new(FREE),
                next: AtomicU32::new(0),
                listed: AtomicBool::new(false),
                last_use: AtomicU32::new(0),
                job: UnsafeCell::new(None),
            }
        }
    }

    /// Takes the record if no thread has it; returns whether it did.
    pub(super) fn claim(&self) -> bool {
        // Relaxed: a hint, and on failure.
        let free = self.state.load(Ordering::Relaxed) == FREE;
        // Acquire: partner of the Release in `give_back`.
        let (done, failed) = (order!(Acquire, "combining-claim"), Ordering::Relaxed);
        free && self.state.compare_exchange(FREE, CLAIMED, done, failed).is_ok()
    }

    /// Releases a record that the calling thread has claimed and does not need any more.
    pub(super) fn give_back(&self) {
        // Release: partner of the Acquire in `claim`.
        self.state.store(FREE, order!(Release, "combining-give-back"));
    }

    /// Notes whether it is on the list now; returns whether it was. The caller has claimed it.
    pub(super) fn set_listed(&self, listed: bool) -> bool {
        // Relaxed, both: passed on with the claim.
        let before = self.listed.load(Ordering::Relaxed);
        self.listed.store(listed, Ordering::Relaxed);
        before
    }

    /// Makes the record free and not listed, in the child of a fork, whatever it was.
    pub(super) fn reset(&self) {
        self.set_listed(false);
        self.give_back();
    }

    /// Publishes this section for a combiner. It must not move until it has run. The caller has
    /// claimed the record.
    pub(super) fn publish(&self, job: Job<T>) {
        // SAFETY: the caller has claimed the record, so no combiner reads the job before the state
        // below announces it.
        self.job.with_mut(|place| unsafe { *place = Some(job) });
        // Release: partner of the Acquire in `serve`.
        self.state.store(PENDING, order!(Release, "combining-publish"));
    }

    /// Runs the section that is published in the record; returns whether there is one. The caller
    /// has exclusive access to `data`.
    pub(super) fn serve(&self, data: &UnsafeCell<T>) -> bool {
        // Acquire: partner of the Release in `publish`.
        let state = self.state.load(order!(Acquire, "combining-serve"));
        if state != PENDING && state != PENDING_ASLEEP {
            return false;
        }
        // SAFETY: the state is pending, so that the job is the combiner's, which the caller is,
        // until `DONE`.
        let job = self.job.with_mut(|place| unsafe { (*place).take() });
        let Job { run, section } = job.expect("a pending record has a job");
        // SAFETY: the section stays where it is until the state is `DONE`, for which its thread
        // waits; the caller, the combiner, has the data. `run` and `section` come from one
        // `as_job`.
        data.with_mut(|data| unsafe { run(section, data) });
        let state = &raw const self.state;
        // Release: partner of the Acquire in `is_done` and `sleep`.
        if self.state.swap(DONE, order!(Release, "combining-done")) == PENDING_ASLEEP {
            futex::wake(state, 1);
        }
        true
    }

    /// Whether the section has run.
    pub(super) fn is_done(&self) -> bool {
        // Acquire: partner of the Release in `serve`.
        self.state.load(order!(Acquire, "combining-spin")) == DONE
    }

    /// Sleeps until the section has run. The caller has ensured that another thread will run it.
    pub(super) fn sleep(&self) {
        // Relaxed, both: says only that this thread sleeps, and `is_done` reads the rest.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.state.compare_exchange(PENDING, PENDING_ASLEEP, done, failed);
        while !self.is_done() {
            futex::wait(&self.state, PENDING_ASLEEP, None);
        }
    }
}
