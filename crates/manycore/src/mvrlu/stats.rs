//! What a domain has done, counted by each thread for itself.
//!
//! Relaxed throughout: each number is written by one thread, and read by others as a statistic.

use crate::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What a [`Domain`](super::Domain) has done so far; the numbers of the paper's section 6 and more.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Default)]
        pub(super) struct Counters {
            $(pub $name: AtomicU64,)*
        }

        impl Counters {
            pub fn add_to(&self, stats: &mut Stats) {
                $(stats.$name += self.$name.load(Ordering::Relaxed);)*
            }
        }
    };
}

counters! {
    /// Transactions that committed a change.
    commits,
    /// Transactions that were given up.
    aborts,
    /// Versions that were committed.
    versions,
    /// How often a version in a log was read, or looked at on the way to an older one, rather than an object itself.
    hops,
    /// Grace periods that were looked for.
    periods,
    /// Of these, how many because the versions on the readers' way had become too many.
    periods_for_readers,
    /// Times that a log was reclaimed by its thread.
    reclaims,
    /// Times that a log was reclaimed by another thread, which its own had not done for a whole period.
    helps,
    /// Times that a thread had to wait until its log had room.
    forced,
    /// Versions that were written back to their objects.
    written_back,
    /// Versions that were discarded because there were newer ones.
    superseded,
    /// Objects that were freed.
    freed,
    /// Segments by which logs have grown.
    grown,
}

/// Adds to a counter of the calling thread's.
#[inline]
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
