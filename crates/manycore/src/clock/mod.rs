//! Clocks that order commits: of several threads, without a line that all of them write.
//!
//! A mechanism with versions asks a clock two things: for a *stamp*, when it commits, and for the
//! *present*, when a snapshot begins, which is to see the commits with stamps up to it. [`Ordo`]
//! answers from the CPUs' own counters, and knows by how much they may differ; [`Counter`] is a
//! number that every commit increments.
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
/// Times are below 2^63. If [`is_exact`](Self::is_exact) says so, the promises of the methods hold.
///
/// Of another clock that does not keep them (a boundary that was measured on some of the CPUs, a
/// virtual machine that has moved), snapshots are not of one moment, and items out of order. What
/// is read is there all the same: no mechanism goes by such a clock for what it discards.
pub unsafe trait Clock: Send + Sync {
    /// Whether the promises follow from the order of memory alone, and not from what is known of
    /// the hardware.
    #[inline]
    fn is_exact(&self) -> bool {
        false
    }

    /// The time of a snapshot that begins now. What the thread reads later in its program, it reads
    /// later.
    fn present(&self) -> u64;

    /// A stamp for a commit: later than every [`present`](Self::present) that was returned before
    /// this was called, on any thread. A thread whose present is not before the stamp sees
    /// everything that this thread has written before its last read-modify-write or fence.
    fn stamp(&self) -> u64;

    /// The time of a snapshot that begins now and has to see every commit that has returned, even
    /// if no thread has waited after it: not before any [`stamp`](Self::stamp) that was returned,
    /// on any thread, before this was called. Otherwise as [`present`](Self::present).
    fn fresh(&self) -> u64;

    /// A time that every `present` reaches which is asked for after this was called, on any thread.
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

    /// Waits until every [`stamp`](Self::stamp) that is asked for afterwards, on any thread, is
    /// later than this one.
    #[inline]
    fn pass(&self, stamp: u64) {
        self.settle(stamp);
    }
}

/// A clock after whose stamps nobody waits.
///
/// A snapshot is as consistent as ever. But one that begins on another thread just after a commit
/// has returned may be from before that commit, by twice the clock's uncertainty: the form of the
/// paper on MV-RLU. A thread always sees its own commits.
#[derive(Debug, Default)]
pub struct RelaxedClock<C>(pub C);

// SAFETY: times are those of the clock inside. Of the promises, those of `fresh`, `settle` and
// `pass` are kept only as far as that clock keeps them without a wait: which no mechanism goes by
// for what it discards.
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
