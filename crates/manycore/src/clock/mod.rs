//! Clocks that order the commits of several threads, without a line that all of them write.
//!
//! A mechanism with versions asks a clock for two things: a commit asks for a *stamp*, and a
//! snapshot that begins asks for the *present*. The snapshot sees the commits with stamps up to its
//! present. [`Ordo`] answers from the CPUs' own counters, and knows the largest difference between
//! them. [`Counter`] is a number that every commit increments.
//!
//! | | a stamp costs | the present costs | after a commit, or before a snapshot |
//! |---|---|---|---|
//! | [`Ordo`] | a read of the CPU's counter | the same | the boundary is waited out, twice |
//! | [`Counter`] | a read-modify-write of the line that all share | a read of that line | nothing |
//! | [`RelaxedClock`] | as the inner clock | likewise | nothing: later sessions may miss it |

mod counter;
mod decision;
mod ordo;
mod since;
#[cfg(feature = "sim")]
mod skewed;

pub use counter::Counter;
pub(crate) use decision::{Decision, LATEST, UNDECIDED, record_of, undecided_by};
pub use ordo::Ordo;
pub use since::Since;
#[cfg(feature = "sim")]
pub use skewed::Skewed;

use crate::sync::hint;

/// Order among commits and snapshots.
///
/// # Safety
///
/// Times are below 2^63. If [`is_exact`](Self::is_exact) returns true, the promises of the methods
/// hold.
///
/// A clock may fail to keep these promises, if its boundary was measured on some of the CPUs only,
/// or if the virtual machine has moved. Then snapshots are not of one moment, and items are out of
/// order. Reads are still of valid memory: no mechanism uses such a clock to decide what it frees.
pub unsafe trait Clock: Send + Sync {
    /// Whether the promises follow from the memory orderings alone, without knowledge of the
    /// hardware.
    #[inline]
    fn is_exact(&self) -> bool {
        false
    }

    /// The time of a snapshot that begins now. Reads that come later in the program are executed
    /// later.
    fn present(&self) -> u64;

    /// A stamp for a commit: later than every [`present`](Self::present) that was returned before
    /// this was called, on any thread. A thread whose present is not before the stamp sees
    /// everything that this thread has written before its last read-modify-write or fence.
    fn stamp(&self) -> u64;

    /// The time of a snapshot that begins now and has to see every commit that has returned, even
    /// one without a wait after it. The time is not before any [`stamp`](Self::stamp) that was
    /// returned, on any thread, before this was called. Otherwise as [`present`](Self::present).
    fn fresh(&self) -> u64;

    /// Returns a time that is not later than any `present` that a thread asks for after this call.
    fn horizon(&self) -> u64;

    /// Waits until the [`horizon`](Self::horizon) reaches a stamp, and returns it: a thread that
    /// begins afterwards sees the commit.
    #[inline]
    fn settle(&self, stamp: u64) -> u64 {
        loop {
            let horizon = self.horizon();
            if horizon >= stamp {
                return horizon;
            }
            hint::pause();
        }
    }

    /// Waits until every [`stamp`](Self::stamp) of a later call, on any thread, is later than this
    /// one.
    #[inline]
    fn pass(&self, stamp: u64) {
        self.settle(stamp);
    }
}

/// A clock after whose stamps no thread waits.
///
/// A snapshot is as consistent as ever. But a snapshot that begins on another thread just after a
/// commit has returned may miss that commit, for up to twice the clock's uncertainty. This is the
/// form of the paper on MV-RLU. A thread always sees its own commits.
#[derive(Debug, Default)]
pub struct RelaxedClock<C>(pub C);

// SAFETY: times are those of the clock inside. Of the promises, `fresh`, `settle` and `pass` hold
// only as far as that clock keeps them without a wait; no mechanism relies on these to decide what
// it frees.
unsafe impl<C: Clock> Clock for RelaxedClock<C> {
    #[inline]
    fn is_exact(&self) -> bool {
        self.0.is_exact()
    }

    #[inline]
    fn present(&self) -> u64 {
        self.0.present()
    }

    #[inline]
    fn stamp(&self) -> u64 {
        self.0.stamp()
    }

    #[inline]
    fn fresh(&self) -> u64 {
        self.0.present()
    }

    #[inline]
    fn horizon(&self) -> u64 {
        self.0.horizon()
    }

    #[inline]
    fn settle(&self, stamp: u64) -> u64 {
        stamp
    }

    #[inline]
    fn pass(&self, _: u64) {}
}
