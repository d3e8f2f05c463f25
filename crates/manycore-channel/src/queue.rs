//! Calls on their way to a worker, and the bell that wakes it.
//!
//! Callers put calls in, and the worker takes all of them at once. No thread takes a single one, so
//! no call returns to the head while another thread reads it. The links are in the calls, so
//! nothing is allocated.
//!
//! The bell says whether the worker sleeps. A caller puts its call in and then rings. The worker
//! announces that it sleeps and then checks the queue once more. Both access the bell by
//! read-modify-writes: whichever comes second sees what the other did before, so no sleeping worker
//! leaves a call behind.

use core::marker::PhantomData;
use core::ptr::null_mut;

use manycore::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use manycore::{mutation, order};

use crate::slot::Slot;

/// Which of a slot's links a queue uses.
pub trait Link {
    /// The link to the next call in the queue.
    fn of(slot: &Slot) -> &AtomicPtr<Slot>;
}

/// The queue of calls.
#[derive(Debug)]
pub struct Calls;

impl Link for Calls {
    fn of(slot: &Slot) -> &AtomicPtr<Slot> {
        &slot.next
    }
}

/// The queue of calls that are to end.
#[derive(Debug)]
pub struct Cancelled;

impl Link for Cancelled {
    fn of(slot: &Slot) -> &AtomicPtr<Slot> {
        &slot.next_cancelled
    }
}

/// Slots, newest first. All zero is empty.
#[derive(Debug)]
pub struct Queue<L> {
    newest: AtomicPtr<Slot>,
    _link: PhantomData<L>,
}

impl<L: Link> Default for Queue<L> {
    fn default() -> Self {
        Self { newest: AtomicPtr::new(null_mut()), _link: PhantomData }
    }
}

impl<L: Link> Queue<L> {
    /// Puts a call in.
    ///
    /// # Safety
    ///
    /// The slot is in no queue of this link, and stays until it was taken out.
    pub unsafe fn push(&self, slot: *mut Slot) {
        // SAFETY: the slot is valid until it was taken out (contract of this function), and only
        // this thread puts it in.
        let link = L::of(unsafe { &*slot });
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // Relaxed: released with the slot, next.
            link.store(newest, Ordering::Relaxed);
            // Release: partner of the Acquire in `take`.
            let release = order!(Release, "queue-push");
            // Relaxed: as above.
            match self.newest.compare_exchange(newest, slot, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => newest = changed,
            }
        }
    }

    /// Takes all slots: returns the oldest one, which links to the next younger.
    pub fn take(&self) -> *mut Slot {
        if self.is_empty() {
            return null_mut();
        }
        // Acquire: partner of the Release in `push`; all pushes of the chain are read-modify-writes
        // of this word.
        let mut newest = self.newest.swap(null_mut(), order!(Acquire, "queue-take"));
        let mut oldest = null_mut();
        while !newest.is_null() {
            // SAFETY: the slot was in the queue until now, and so is there (contract of `push`);
            // the swap has taken it out of other threads' reach.
            let link = L::of(unsafe { &*newest });
            // Relaxed, both: acquired above.
            let next = link.load(Ordering::Relaxed);
            link.store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
        oldest
    }

    /// The next younger call after one that was taken. Call it before that one is answered.
    pub fn after(slot: &Slot) -> *mut Slot {
        // Relaxed: the taker's own.
        L::of(slot).load(Ordering::Relaxed)
    }

    /// Whether there is nothing, as far as one can see.
    pub fn is_empty(&self) -> bool {
        // Relaxed: a hint, or ordered by the bell.
        self.newest.load(Ordering::Relaxed).is_null()
    }
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Whether a worker sleeps.
#[derive(Debug, Default)]
pub struct Bell {
    word: AtomicU32,
}

impl Bell {
    /// Called after a slot was pushed: returns whether the worker sleeps, so that the caller has to
    /// wake it.
    #[must_use]
    pub fn ring(&self) -> bool {
        // AcqRel: partner of the swap in `doze`. This swap releases the push before it to a worker
        // that goes to sleep later, or sees that the worker has gone to sleep.
        self.word.swap(AWAKE, order!(AcqRel, "bell-ring")) == ASLEEP
    }

    /// The worker goes to sleep, unless there is a call in the queues by now. The thread that rings
    /// wakes it.
    pub fn doze(&self, are_empty: impl FnOnce() -> bool) -> bool {
        // AcqRel: partner of that in `ring`.
        self.word.swap(ASLEEP, order!(AcqRel, "bell-doze"));
        let empty = are_empty();
        if !empty {
            self.rise();
        }
        empty
    }

    /// The worker is awake.
    pub fn rise(&self) {
        if mutation!("bell-rise") {
            return self.word.store(AWAKE, Ordering::Relaxed); // Relaxed: the mistake
        }
        // A caller that found the worker awake by another's ring does not wake it. Relaxed: a
        // read-modify-write passes on that caller's release to the next `doze`, which a store would
        // not.
        self.word.swap(AWAKE, Ordering::Relaxed);
    }
}
