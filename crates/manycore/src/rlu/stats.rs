//! What a domain has done.

pub(super) use crate::counters::count;
use crate::counters::counters;

counters! {
    /// What a [`Domain`](super::Domain) has done so far.
    Stats:
    /// Transactions that committed a change.
    commits,
    /// Transactions that were given up.
    aborts,
    /// Copies that were committed.
    copies,
    /// How often a copy was read rather than its object.
    steals,
    /// How often a thread looked for sessions to wait for.
    quiescences,
    /// Sessions that it found then.
    waits,
    /// How often a thread gave up its CPU while it waited for a session.
    yields,
    /// How often a thread wrote back what another had committed.
    helps,
    /// Copies that were written back to their objects.
    written_back,
    /// Objects that were freed.
    freed,
}
