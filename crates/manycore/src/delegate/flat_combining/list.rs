//! The records that may have sections to run, and the list of those that were used recently.

use super::record::Record;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, array_of, const_new, cpu, order, tuning};

/// The number of records, and so of threads that can wait for a combiner. Further threads wait for
/// a record.
pub const RECORDS: usize = if cfg!(loom) { 2 } else { 64 };

/// The index at which the caller begins its search for a record: near its CPU. Under the model
/// checker all begin at the same index, so that records change hands.
fn first() -> usize {
    if cfg!(loom) { 0 } else { cpu::current() as usize }
}

/// The list. A link is the number of a record and one, or 0 at the end.
pub(super) struct List<T> {
    head: AtomicU32,
    /// How often combiners have gone through the list.
    passes: AtomicU32,
    records: [CachePadded<Record<T>>; RECORDS],
}

impl<T> List<T> {
    const_new! {
        pub(super) fn new() -> Self {
            Self {
                head: AtomicU32::new(0),
                passes: AtomicU32::new(0),
                records: array_of!(CachePadded(Record::new()); RECORDS),
            }
        }
    }

    fn record(&self, link: u32) -> Option<&Record<T>> {
        link.checked_sub(1).map(|number| &*self.records[number as usize])
    }

    /// Claims a record on the list for the caller, near its CPU if possible; `None` if all are
    /// taken.
    pub(super) fn claim(&self) -> Option<&Record<T>> {
        let places = tuning::places(RECORDS);
        let first = first();
        let number =
            (0..places).map(|i| (first + i) % places).find(|i| self.records[*i].claim())?;
        let record = &*self.records[number];
        if !record.set_listed(true) {
            self.push(record, number as u32 + 1);
        }
        Some(record)
    }

    fn push(&self, record: &Record<T>, link: u32) {
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // Relaxed: released by the line below.
            record.next.store(head, Ordering::Relaxed);
            // Release: partner of the Acquire in `pass`.
            let release = order!(Release, "combining-push");
            match self.head.compare_exchange(head, link, release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }

    /// Runs the sections that are published in records of the list; returns whether there were any.
    /// Also removes records from the list that have been idle for long. The caller is the combiner.
    pub(super) fn pass(&self, data: &UnsafeCell<T>) -> bool {
        // Relaxed, throughout except for the head: combiners write `passes`, `last_use`, and the
        // links behind the head, or they were written before the head.
        let now = self.passes.load(Ordering::Relaxed).wrapping_add(1);
        self.passes.store(now, Ordering::Relaxed);
        let mut served = false;
        let mut before: Option<&Record<T>> = None;
        // Acquire: partner of the Release in `push`.
        let mut link = self.head.load(order!(Acquire, "combining-walk"));
        while let Some(record) = self.record(link) {
            link = record.next.load(Ordering::Relaxed); // Relaxed: as above
            if record.serve(data) {
                served = true;
                record.last_use.store(now, Ordering::Relaxed); // Relaxed: as above
            } else if let Some(before) = before
                && now.wrapping_sub(record.last_use.load(Ordering::Relaxed)) > tuning::idle_passes()
                && record.claim()
            {
                // The first record stays, because other threads insert theirs before it at any
                // time.
                before.next.store(link, Ordering::Relaxed); // Relaxed: as above
                record.reset();
                continue;
            }
            before = Some(record);
        }
        served
    }

    /// Called in the child of a fork: removes the records of threads that do not exist in the
    /// child. The caller is the combiner, and no thread publishes.
    #[cold]
    pub(super) fn clear(&self) {
        self.head.store(0, Ordering::Relaxed); // Relaxed: released with the combiner's lock
        self.records.iter().for_each(|record| record.reset());
    }
}
