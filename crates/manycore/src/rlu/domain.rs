//! A domain: the threads that take part, and the clock that they go by.

use alloc::boxed::Box;
use core::ptr::null_mut;

use super::config::Config;
use super::handle::Handle;
use super::record::{Local, Record};
use super::stats::Stats;
use crate::clock::{Clock, Counter};
use crate::session::pool::Depot;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{barrier, full_fence, order, thread};

/// Objects that threads share, and the threads.
///
/// All memory is the domain's, and is given back when it is dropped.
pub struct Domain<C: Clock = Counter> {
    pub(super) clock: C,
    pub(super) config: Config,
    pub(super) depot: Depot,
    records: AtomicPtr<Record>,
    /// Whether threads begin sessions without a fence.
    asymmetric: bool,
}

/// An asymmetric barrier costs a writer as much as some hundred fences cost readers: where at least so many commits share one.
const COMMITS_A_BARRIER: usize = 8;

impl<C: Clock + Default> Default for Domain<C> {
    fn default() -> Self {
        Self::new(C::default(), Config::default())
    }
}

impl<C: Clock + Default> Domain<C> {
    /// One whose threads write back after every eleventh commit: the ten that are put off are as in the paper.
    pub fn deferring() -> Self {
        Self::new(C::default(), Config { deferred: 10, ..Config::default() })
    }
}

impl<C: Clock> Domain<C> {
    /// With a clock and parameters.
    pub fn new(clock: C, config: Config) -> Self {
        let asymmetric = config.deferred >= COMMITS_A_BARRIER && barrier::is_asymmetric();
        let (depot, records) = (Depot::new(), AtomicPtr::new(null_mut()));
        Self { clock, config, depot, records, asymmetric }
    }

    /// Lets the calling thread take part.
    pub fn register(&self) -> Handle<'_, C> {
        let adopted = self.records().find_map(|record| Some((record, record.take()?)));
        let (record, local) = adopted.unwrap_or_else(|| self.new_record());
        record.thread.store(thread::id(), Ordering::Relaxed); // Relaxed: a number
        Handle::new(self, record, local)
    }

    fn new_record(&self) -> (&Record, Box<Local>) {
        let (record, local) = Record::new();
        let record = Box::into_raw(Box::new(record));
        // Relaxed, here and on failure: the compare-and-swap decides.
        let mut head = self.records.load(Ordering::Relaxed);
        loop {
            // SAFETY: the record is this thread's up to the line below.
            unsafe { (*record).next = head };
            // Release: partner of the Acquire in `records`.
            let release = order!(Release, "rlu-add-record");
            match self.records.compare_exchange(head, record, release, Ordering::Relaxed) {
                // SAFETY: records are there for as long as the domain.
                Ok(_) => return (unsafe { &*record }, local),
                Err(changed) => head = changed,
            }
        }
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        // Acquire: partner of the Release in `new_record`.
        let first = self.records.load(order!(Acquire, "rlu-records"));
        // SAFETY: null, or a record, which is there for as long as the domain.
        core::iter::successors(unsafe { first.as_ref() }, |record| unsafe { record.next.as_ref() })
    }

    /// Between a session's begin, which its record says, and what it reads.
    #[inline]
    pub(super) fn fence_reader(&self) {
        if self.asymmetric {
            barrier::light();
        } else {
            full_fence!("rlu-reader-fence");
        }
    }

    /// Between what a thread has written, and what it reads in records.
    pub(super) fn fence_readers(&self) {
        full_fence!("rlu-writer-fence");
        if self.asymmetric {
            barrier::heavy();
        }
    }

    /// What has been done so far, by all threads.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.records().for_each(|record| record.counters.add_to(&mut stats));
        stats
    }

    /// Bytes of memory for objects and copies that the domain has, whether in use or free.
    pub fn object_bytes(&self) -> usize {
        self.depot.bytes()
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock> Drop for Domain<C> {
    fn drop(&mut self) {
        let mut record = self.records.load(Ordering::Relaxed); // Relaxed: nobody else is left
        while !record.is_null() {
            // SAFETY: from `new_record`; the handles that borrowed the domain are gone.
            let record_box = unsafe { Box::from_raw(record) };
            record = record_box.next;
        }
    }
}

impl<C: Clock> core::fmt::Debug for Domain<C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Domain").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
