//! The decision when a transaction commits: a word of its thread, which others may read before the
//! stamp is known.
//!
//! A reader may begin between the moment when a commit takes its stamp and the moment when it
//! stores the stamp. The reader would then miss a commit that is before its begin. So from the
//! transaction's first lock on, the word says that there is no stamp yet. A reader that finds this
//! writes its own time into the word, and goes on: the stamp has to be later than that time. If the
//! reader writes its time while the commit takes its stamp, the commit takes another stamp. So no
//! thread waits for a thread that is preempted in its commit.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{CachePadded, order};

/// Above all stamps: no stamp yet. A transaction's writes have this value, and a pointer to the
/// record of the transaction's thread.
pub(crate) const UNDECIDED: u64 = 1 << 63;
/// A transaction of the record at this address writes this value instead of its stamp. The address
/// is shifted to make room for the mark, because a kernel's addresses have the same bit set.
/// Records begin at even addresses.
#[inline]
pub(crate) fn undecided_by(record: usize) -> u64 {
    debug_assert!(record.is_multiple_of(2), "a record at an odd address");
    UNDECIDED | (record as u64 >> 1)
}

/// The address of the record.
#[inline]
pub(crate) fn record_of(undecided: u64) -> usize {
    (undecided << 1) as usize
}

/// Later than any stamp.
pub(crate) const LATEST: u64 = UNDECIDED - 1;

/// The decision of the present transaction, or of the last one: `UNDECIDED` with a time that its
/// stamp has to exceed, or its stamp.
pub(crate) struct Decision(CachePadded<AtomicU64>);

impl Decision {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(UNDECIDED)))
    }

    /// A transaction begins to lock objects, and its stamp is going to be later than this.
    pub fn open(&self, time: u64) {
        // Release: partner of the Acquire in `fate`, which then sees that the versions of the last
        // transaction have their stamps.
        self.0.store(UNDECIDED | time, Ordering::Release);
    }

    /// Commits the transaction, with a stamp that `stamp` takes. `stamp` gets the time that other
    /// threads ask the stamp to exceed.
    ///
    /// A thread that sees an object locked sees the word open, because the word was opened before.
    /// So it either pushes the stamp in time, or finds the stamp.
    pub fn decide(&self, mut stamp: impl FnMut(u64) -> u64) -> u64 {
        // Relaxed: the number only, and if it is an old one, the exchange fails.
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let asked = word & !UNDECIDED;
            let decided = stamp(asked);
            if decided <= asked {
                continue; // the clock is a little behind that thread's
            }
            // Release: partner of the Acquire in `fate`. Relaxed on failure: the number only.
            let done = order!(Release, "decision-decide");
            match self.0.compare_exchange(word, decided, done, Ordering::Relaxed) {
                Ok(_) => return decided,
                Err(raised) => word = raised,
            }
        }
    }

    /// The stamp of the transaction; `None` if it is still open. Then its stamp will be later than
    /// `limit`.
    #[cold]
    pub fn fate(&self, limit: u64) -> Option<u64> {
        // Acquire, here and below: partner of the Release in `open` and `decide`.
        let mut word = self.0.load(order!(Acquire, "decision-fate"));
        loop {
            if word < UNDECIDED {
                return Some(word);
            }
            if word & !UNDECIDED >= limit {
                return None;
            }
            // Acquire: partner of the Releases in `open` and `decide`, also if it fails.
            let (raised, acquire) = (UNDECIDED | limit, order!(Acquire, "decision-raise"));
            match self.0.compare_exchange(word, raised, acquire, acquire) {
                Ok(_) => return None,
                Err(changed) => word = changed,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn records_may_be_anywhere() {
        // An address of a program, one of a kernel, and the last line.
        for address in [0x5555_0000_0080_usize, 0xFFFF_8880_1234_5680, usize::MAX - 127] {
            let stamp = undecided_by(address);
            assert!(stamp >= UNDECIDED && stamp != u64::MAX && record_of(stamp) == address);
        }
        assert_ne!(undecided_by(0x7FFF_8880_1234_5680), undecided_by(0xFFFF_8880_1234_5680));
    }
}
