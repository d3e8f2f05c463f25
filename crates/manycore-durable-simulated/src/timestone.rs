//! MV-RLU with TimeStone's logs in persistent memory.
//!
//! Before a transaction is published, its thread appends a record of one line to its own log of
//! operations, writes it back and waits. When half of that log is full, the thread makes a
//! checkpoint: of each object that its transactions have changed since the last one, it writes the
//! present data behind a header into its checkpoint log, waits once, and gives the log of
//! operations free, which is one more line.
//!
//! Differences to the paper: objects are in memory that is not persistent, as in the crate
//! `timestone`, so nothing is written back to them there. The thread itself makes a checkpoint,
//! between two transactions. Data that only recovery would read is not written: this shows the
//! logs' cost, and is no store.

// What is counted costs nothing.
use std::sync::atomic::{AtomicU64, Ordering};

use manycore_sim::backend;
use manycore_simulated::mvrlu;
use manycore_traits::{Conflict, Link, RawSession, Sessions, View};

use crate::persistence::{LINE, Line, Persistence};

/// Records of the log of operations between two checkpoints.
pub const PERIOD: usize = 64;
/// Lines of the checkpoint log, which is reused from its start.
const CHECKPOINT: usize = 256;
/// Bytes in front of an object in the checkpoint log: its address, its length, the stamp and a
/// checksum.
const HEADER: usize = 32;
/// Bytes of what stands before a version in MV-RLU's log.
const VERSION: usize = 64;

/// A domain whose commits are logged.
#[derive(Default)]
pub struct Logged<P> {
    domain: mvrlu::Domain,
    persistence: P,
    device_bytes: AtomicU64,
    version_bytes: AtomicU64,
    checkpoints: AtomicU64,
}

/// A thread's access, with its logs.
pub struct LoggedHandle<'a, P> {
    inner: mvrlu::Handle<'a>,
    shared: &'a Logged<P>,
    operations: Box<[Line]>,
    checkpoint: Box<[Line]>,
    /// Where the next record, and the next object, is written.
    next_operation: usize,
    next_checkpoint: usize,
    /// Addresses and bytes of the objects that have changed since the last checkpoint.
    changed: Vec<(usize, usize)>,
}

impl<P: Persistence> LoggedHandle<'_, P> {
    /// A line, as the thread that has the log writes it.
    fn write(&self, line: &Line) {
        backend::write_plain(std::ptr::from_ref(line).addr(), LINE);
        self.shared.persistence.write_back(line);
        // Relaxed: a number alone.
        self.shared.device_bytes.fetch_add(LINE as u64, Ordering::Relaxed);
    }

    /// Before the session's commit is seen.
    fn log(&mut self) {
        let mut versions = 0;
        for write in self.inner.writes() {
            let bytes = write.object_bytes();
            versions += VERSION + bytes;
            self.changed.push((write.link::<()>().as_ptr().addr(), bytes));
        }
        let made = self.inner.made::<()>().map(|(link, bytes)| (link.as_ptr().addr(), bytes));
        self.changed.extend(made);
        self.write(&self.operations[self.next_operation]);
        self.shared.persistence.wait();
        self.next_operation = (self.next_operation + 1) % self.operations.len();
        // Relaxed: a number alone.
        self.shared.version_bytes.fetch_add(versions as u64, Ordering::Relaxed);
    }

    /// In no session.
    fn make_checkpoint(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for (object, bytes) in changed.drain(..) {
            backend::read_plain(object, bytes);
            for _ in 0..(HEADER + bytes).div_ceil(LINE) {
                self.write(&self.checkpoint[self.next_checkpoint]);
                self.next_checkpoint = (self.next_checkpoint + 1) % CHECKPOINT;
            }
        }
        self.changed = changed;
        self.shared.persistence.wait();
        // Up to where the log of operations is free.
        self.write(&self.operations[self.next_operation]);
        self.shared.persistence.wait();
        // Relaxed: a number alone.
        self.shared.checkpoints.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: `Logged` passes everything on to the sessions of its domain, which keep the contract.
unsafe impl<P: Persistence> Sessions for Logged<P> {
    type Handle<'a> = LoggedHandle<'a, P>;

    fn register(&self) -> LoggedHandle<'_, P> {
        LoggedHandle {
            inner: self.domain.register(),
            shared: self,
            operations: Line::zeros(2 * PERIOD),
            checkpoint: Line::zeros(CHECKPOINT),
            next_operation: 0,
            next_checkpoint: 0,
            changed: Vec::new(),
        }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        Sessions::statistics(&self.domain, visit);
        // Relaxed: numbers alone.
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        visit("checkpoints", count(&self.checkpoints));
        visit("device_bytes", count(&self.device_bytes));
        visit("version_bytes", count(&self.version_bytes));
    }
}

// SAFETY: the sessions are the domain's. A commit only adds steps before and after the domain's
// commit.
unsafe impl<P: Persistence> RawSession for LoggedHandle<'_, P> {
    #[inline]
    unsafe fn begin(&mut self, view: View) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.begin(view) }
    }

    #[inline]
    unsafe fn deref<T: Copy>(&self, link: Link<T>) -> *const T {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.deref(link) }
    }

    #[inline]
    unsafe fn try_lock<T: Copy>(&mut self, link: Link<T>) -> Result<*mut T, Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.try_lock(link) }
    }

    #[inline]
    unsafe fn try_lock_const<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.try_lock_const(link) }
    }

    #[inline]
    unsafe fn read_unlocked<T: Copy>(&mut self, link: Link<T>) -> Result<*const T, Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.read_unlocked(link) }
    }

    #[inline]
    unsafe fn alloc<T: Copy>(&mut self, data: T) -> Link<T> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.alloc(data) }
    }

    #[inline]
    unsafe fn free<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.free(link) }
    }

    #[inline]
    unsafe fn end_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.end_owned(link) }
    }

    #[inline]
    unsafe fn claim_owned<T: Send + Sync + 'static>(&mut self, link: Link<T>) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.claim_owned(link) }
    }

    #[inline]
    unsafe fn free_owned<T: Send + Sync + 'static>(
        &mut self,
        link: Link<T>,
    ) -> Result<(), Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.free_owned(link) }
    }

    #[inline]
    unsafe fn free_in_place<T: Copy>(&mut self, link: Link<T>) -> Result<(), Conflict> {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.free_in_place(link) }
    }

    #[inline]
    unsafe fn doom(&mut self, conflict: Conflict) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.doom(conflict) }
    }

    #[inline]
    unsafe fn abort(&mut self) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.abort() }
    }

    #[inline]
    unsafe fn back_off(&mut self, conflict: Conflict, attempts: u32) {
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.back_off(conflict, attempts) }
    }

    fn make_owned<T: Send + Sync + 'static>(&mut self, value: T) -> Link<T> {
        self.inner.make_owned(value)
    }

    fn end_dying(&mut self) {
        self.inner.end_dying();
    }

    fn adopt(&mut self) {
        self.inner.adopt();
    }

    fn locks_max<T: Copy>(&self) -> usize {
        self.inner.locks_max::<T>()
    }

    unsafe fn commit(&mut self) -> Result<(), Conflict> {
        let has_writes = self.inner.doomed().is_none() && self.inner.has_writes();
        if has_writes {
            self.log();
        }
        // SAFETY: the contract of this method, which is the same.
        unsafe { self.inner.commit()? };
        if has_writes && self.next_operation.is_multiple_of(PERIOD) {
            self.make_checkpoint();
        }
        Ok(())
    }
}
