//! OpLog: each core logs operations with the time, and they are applied in the order of time when a
//! thread reads.
//!
//! # Idea
//!
//! Each core has a log. An operation is stamped with the clock and added to the log of the core on
//! which its thread runs, whose line is in that core's cache. A thread that reads acquires the
//! structure's lock, takes all logs, merges them by their stamps, applies the operations, and
//! reads. In contrast to [`ldu`](crate::ldu), any operation can be logged, and operations are
//! applied in an order that explains what threads did. For that all logs have to be merged before a
//! read.
//!
//! # Source
//!
//! S. Boyd-Wickizer, M. F. Kaashoek, R. Morris and N. Zeldovich, "OpLog: a library for scaling
//! update-heavy data structures", MIT-CSAIL-TR-2014-019. Here a structure has its own logs, in
//! place of a slot in a table of each core; and a core's log is not searched for operations that
//! cancel each other.
//!
//! Clocks of cores may differ. So an operation that has to come after another, such as the removal
//! of an object after its insertion, declares that ([`OpLog::log_after`]): its stamp is higher,
//! whatever its core's clock reads.
//!
//! # Memory order
//!
//! Each log is under a lock of its own. A thread that reads acquires all of the locks before it
//! takes the first log. So the taken operations are complete: an operation that came before a taken
//! one was in its log, and is taken, too.
//!
//! # Cost
//!
//! An operation is an acquisition of its core's lock and a read of the clock. A read acquires the
//! locks of all cores, and sorts the operations that it finds.
//!
//! # When not to use it
//!
//! Where reads are not rare, or where operations have results. For an object that is only inserted
//! and removed: `ldu` needs neither clock nor sorting, and most of these operations cancel.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::RawLock;
use crate::due::Due;
use crate::lock::{Adaptive, Futex, Guarded, PlainLock};
use crate::sync::cell::UnsafeCell;
use crate::sync::phase::{self, Phase};
use crate::sync::{CachePadded, clock, cpu, hint, own_of};

/// What can be updated by a log.
pub trait Apply<O> {
    /// Does this.
    fn apply(&mut self, operation: O);
}

/// The number of operations in a core's log at which they are applied, so that a log without reads
/// does not grow without end.
pub const MANY: usize = 4096;

/// When an operation was logged: those with higher stamps are applied later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

/// A structure `S` whose operations `O` are logged by each core, under a lock `L`.
///
/// ```
/// use manycore::oplog::{Apply, OpLog};
///
/// struct Total(i64);
/// impl Apply<i64> for Total {
///     fn apply(&mut self, change: i64) {
///         self.0 += change;
///     }
/// }
///
/// let total = OpLog::<Total, i64>::new(Total(0));
/// std::thread::scope(|s| {
///     (1..=4).for_each(|i| drop(s.spawn(|| total.log(10))));
/// });
/// assert_eq!(total.read(|total| total.0), 40);
/// ```
pub struct OpLog<S: Apply<O>, O, L = Adaptive> {
    logs: Box<[CachePadded<Log<O>>]>,
    guarded: CachePadded<Guarded<Merged<S, O>, L>>,
    /// When it was brought up to date by the timer.
    due: Due,
}

struct Merged<S, O> {
    structure: S,
    /// Where logs are merged; its memory is kept.
    merged: Vec<(Stamp, O)>,
    statistics: Statistics,
}

/// What applying the logs has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// How often all logs were merged.
    pub merges: u64,
    /// Operations that were found in them, and applied.
    pub operations: u64,
    /// The most operations that one merge found, that is, the greatest total length of the logs.
    pub operations_max: u64,
}

/// A core's log, by stamps.
struct Log<O> {
    lock: Futex,
    operations: UnsafeCell<Vec<(Stamp, O)>>,
}

// SAFETY: a log's operations are accessed only with its lock held, and the structure and the
// operations taken out of logs with the structure's lock. Both may go to another thread (`S: Send`,
// `O: Send`).
unsafe impl<S: Apply<O> + Send, O: Send, L: RawLock> Sync for OpLog<S, O, L> {}
// SAFETY: an `OpLog` that is moved is in no call; its structure and operations may go to another
// thread.
unsafe impl<S: Apply<O> + Send, O: Send, L: RawLock> Send for OpLog<S, O, L> {}

impl<S: Apply<O>, O, L: RawLock> OpLog<S, O, L> {
    /// Creates one with this structure.
    pub fn new(structure: S) -> Self {
        let log =
            |_| CachePadded(Log { lock: Futex::new(), operations: UnsafeCell::new(Vec::new()) });
        let inner = Merged { structure, merged: Vec::new(), statistics: Statistics::default() };
        Self {
            logs: (0..cpu::count().max(1)).map(log).collect(),
            guarded: CachePadded(Guarded::new(inner)),
            due: Due::new(),
        }
    }

    /// Has this done before any thread reads.
    pub fn log(&self, operation: O) -> Stamp {
        self.log_after(operation, Stamp::default())
    }

    /// Has this operation done before any thread reads, and after the operations logged with that
    /// stamp.
    ///
    /// The operation that makes [`MANY`] in a core's log applies all logs; if another thread holds
    /// the structure's lock, this one yields its CPU. So call it where operations may be applied:
    /// hold no lock that applying one takes.
    ///
    /// # Panics
    ///
    /// If an operation that is applied then panics; the operations behind it are lost.
    pub fn log_after(&self, operation: O, after: Stamp) -> Stamp {
        let log = &self.logs[own_of(self.logs.len())];
        log.lock.acquire();
        let (stamp, is_long) = log.operations.with_mut(|operations| {
            // SAFETY: this thread has acquired the log's lock above, and releases it below;
            // `operations` is reached under it only.
            let operations = unsafe { &mut *operations };
            let last = operations.last().map_or(Stamp::default(), |(last, _)| *last);
            let stamp = Stamp(clock::now().max(after.max(last).0 + 1));
            operations.push((stamp, operation));
            (stamp, operations.len().is_multiple_of(MANY))
        });
        // SAFETY: acquired in this function, and not released since: the code in between panics
        // only if memory runs out, which aborts.
        unsafe { log.lock.release() };
        if is_long && !self.try_synchronize() {
            // The owner of the lock may have been preempted, while all others log more for it to
            // apply: it gets this CPU.
            hint::yield_now();
        }
        stamp
    }

    /// Takes all logs. The caller has the structure's lock.
    fn take(&self, merged: &mut Vec<(Stamp, O)>) {
        self.logs.iter().for_each(|log| log.lock.acquire());
        for log in &self.logs {
            // SAFETY: the line above has acquired the locks of all logs.
            log.operations.with_mut(|operations| merged.append(unsafe { &mut *operations }));
        }
        // SAFETY: the first line of this function has acquired the locks of all logs.
        self.logs.iter().for_each(|log| unsafe { log.lock.release() });
    }

    /// Applies what is logged. The caller has the structure's lock.
    fn drain(&self, inner: &mut Merged<S, O>) {
        let Merged { structure, merged, statistics } = inner;
        phase::during(Phase::Log, || {
            self.take(merged);
            let found = merged.len() as u64;
            statistics.merges += 1;
            statistics.operations += found;
            statistics.operations_max = statistics.operations_max.max(found);
            // A stable sort: if an operation panics, those behind it are lost, and no others.
            merged.sort_by_key(|(stamp, _)| *stamp);
            merged.drain(..).for_each(|(_, operation)| structure.apply(operation));
        });
    }

    /// Reads the structure after all operations that were logged before. No other thread reads
    /// meanwhile. `look` and operations must not read either, since they would deadlock with
    /// themselves. They may log.
    ///
    /// # Panics
    ///
    /// If `look` or an operation panics. Operations that were logged before and not applied are
    /// then lost.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        self.guarded.with(|inner| {
            self.drain(inner);
            look(&inner.structure)
        })
    }

    /// Applies what is logged.
    pub fn synchronize(&self) {
        self.guarded.with(|inner| self.drain(inner));
    }

    /// The timer: applies the logged operations, if this function has not tried that for this many
    /// ticks of [`clock::now`], no other thread is about to do it, and no other thread has the
    /// lock. Returns whether it did. Cheap enough to be called with every operation.
    pub fn synchronize_if_due(&self, period: u64) -> bool {
        self.due.claim(period).is_some_and(|_claim| self.try_synchronize())
    }

    /// Applies what is logged, unless another thread has the lock.
    fn try_synchronize(&self) -> bool {
        self.guarded.try_with(|inner| self.drain(inner)).is_some()
    }

    /// What has been done so far.
    pub fn statistics(&self) -> Statistics {
        self.guarded.with(|inner| inner.statistics)
    }
}

impl<S: Apply<O>, O, L> Drop for OpLog<S, O, L> {
    fn drop(&mut self) {
        let mut merged = Vec::new();
        for log in &self.logs {
            // SAFETY: `&mut self`: no other thread has the log.
            log.operations.with_mut(|operations| merged.append(unsafe { &mut *operations }));
        }
        merged.sort_by_key(|(stamp, _)| *stamp);
        let apply = |inner: &mut Merged<S, O>| {
            merged.into_iter().for_each(|(_, operation)| inner.structure.apply(operation));
        };
        // SAFETY: `&mut self`: no other thread has the structure.
        unsafe { self.guarded.alone(apply) };
    }
}

opaque! { [S: Apply<O>, O, L] OpLog<S, O, L>, "OpLog"; }
