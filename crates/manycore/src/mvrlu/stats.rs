//! What a domain has done.

pub(super) use crate::counters::count;
use crate::counters::counters;

counters! {
    /// A [`Domain`](super::Domain)'s counts so far: the numbers of the paper's section 6 and more.
    Stats:
    /// Transactions that committed a change.
    commits,
    /// Transactions that were given up.
    aborts,
    /// Versions that were committed.
    versions,
    /// How often a version in a log was read, or passed on the way to an older one, rather than
    /// an object itself.
    hops,
    /// Grace periods that were looked for.
    periods,
    /// How many of these began because the versions on the readers' way had become too many.
    periods_for_readers,
    /// Times that a log was reclaimed by its thread.
    reclaims,
    /// Logs that another thread reclaimed, because their own thread had not done so for a whole
    /// grace period.
    helps,
    /// How often a thread had to wait until its log had room.
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
