//! When a transaction commits: a word of its thread's, which others may read before the stamp is known.
//!
//! A reader may begin between the moment when a commit takes its stamp and the moment when it stores it, and would miss a
//! commit that is before its begin. So the commit first says that it is under way. A reader that finds it so writes into the word
//! that the stamp has to be later than its own time, and goes on; the commit then takes a new stamp. Nobody waits for a thread
//! that is preempted in its commit.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, order};

/// Above all stamps: no stamp yet. What has been written by a transaction bears it together with a pointer that says by whom.
pub(crate) const UNDECIDED: u64 = 1 << 63;
/// Later than any stamp.
pub(crate) const LATEST: u64 = UNDECIDED - 1;
/// The transaction has not come to its commit.
const PENDING: u64 = u64::MAX;

/// Of the present transaction or the last one: `PENDING`; or `UNDECIDED` and a time that its stamp is going to exceed; or its
/// stamp.
pub(crate) struct Decision(CachePadded<AtomicU64>);

impl Decision {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(PENDING)))
    }

    /// A transaction begins to lock objects.
    pub fn set_pending(&self) {
        // Release: partner of the Acquire in `fate`, which then sees that the versions of the last transaction have their
        // stamps.
        self.0.store(PENDING, Ordering::Release);
    }

    /// Commits the transaction, with a stamp from `stamp` that is later than what other threads ask for.
    pub fn decide(&self, mut stamp: impl FnMut() -> u64) -> u64 {
        // AcqRel: whoever has found `PENDING` so far has done so before a stamp is asked for.
        let mut word = UNDECIDED;
        self.0.swap(word, Ordering::AcqRel);
        loop {
            let decided = stamp();
            if decided <= word & !UNDECIDED {
                continue; // the clock is a little behind that thread's
            }
            // Release: partner of the Acquire in `fate`. Relaxed on failure: the number only.
            let done = Ordering::Release;
            match self.0.compare_exchange(word, decided, done, Ordering::Relaxed) {
                Ok(_) => return decided,
                Err(raised) => word = raised,
            }
        }
    }

    /// The stamp of the transaction; or none if that is going to be later than `limit`, which it is from now on if it was open.
    #[cold]
    pub fn fate(&self, limit: u64) -> Option<u64> {
        // Acquire, here and below: partner of the Release in `set_pending` and `decide`.
        let mut word = self.0.load(order!(Acquire, "decision-fate"));
        loop {
            if word < UNDECIDED {
                return Some(word);
            }
            if word == PENDING || word & !UNDECIDED >= limit {
                return None;
            }
            let (raised, acquire) = (UNDECIDED | limit, Ordering::Acquire); // Acquire: as above
            match self.0.compare_exchange(word, raised, acquire, acquire) {
                Ok(_) => return None,
                Err(changed) => word = changed,
            }
        }
    }
}
