//! Epochs and the hash table of Concurrency Kit.

use std::ffi::c_void;
use std::marker::PhantomData;

use manycore::lock::Adaptive;
use manycore_bench::set::peers::chain::{Domain, Node};
use manycore_bench::set::{AnySet, Task};
use manycore_traits::{ConcurrentSet, RawLock, SetHandle};

use crate::{Header, Opaque};

unsafe extern "C" {
    safe fn peer_ck_domain_new() -> *mut c_void;
    fn peer_ck_domain_destroy(domain: *mut c_void);
    fn peer_ck_register(domain: *mut c_void) -> *mut c_void;
    fn peer_ck_unregister(record: *mut c_void);
    fn peer_ck_enter(record: *mut c_void);
    fn peer_ck_leave(record: *mut c_void);
    fn peer_ck_retire(
        record: *mut c_void,
        entry: *mut Header,
        release: unsafe extern "C" fn(*mut Header),
    );
    safe fn peer_ck_ht_new(keys: u64) -> *mut c_void;
    fn peer_ck_ht_destroy(table: *mut c_void);
    fn peer_ck_ht_contains(table: *mut c_void, key: u64) -> bool;
    fn peer_ck_ht_insert(table: *mut c_void, key: u64) -> bool;
    fn peer_ck_ht_remove(table: *mut c_void, key: u64) -> bool;
}

/// A domain of epochs.
pub struct Epoch(Opaque);

/// A thread's record in a domain.
pub struct Record<'a>(*mut c_void, PhantomData<&'a Epoch>);

/// A section, until it is dropped.
pub struct Section<'a>(*mut c_void, PhantomData<&'a ()>);

// SAFETY: Concurrency Kit frees nothing that a registered thread may have found in its section.
unsafe impl Domain for Epoch {
    type Header = Header;
    type Thread<'a> = Record<'a>;
    type Section<'a> = Section<'a>;

    fn new() -> Self {
        Self(Opaque(peer_ck_domain_new()))
    }

    fn register(&self) -> Record<'_> {
        // SAFETY: the domain is there for as long as the record.
        Record(unsafe { peer_ck_register(self.0.0) }, PhantomData)
    }

    #[inline]
    fn enter<'a>(thread: &'a Record<'_>) -> Section<'a> {
        // SAFETY: `thread` has this thread's record, which is used by no other.
        unsafe { peer_ck_enter(thread.0) };
        Section(thread.0, PhantomData)
    }

    unsafe fn retire(section: &Section<'_>, node: *mut Node<Self>) {
        // SAFETY: a node begins with its header, and is freed by the call that it is given.
        unsafe { peer_ck_retire(section.0, node.cast(), release) };
    }
}

/// # Safety
///
/// The header belongs to a node from `Box`, which no other code uses.
unsafe extern "C" fn release(header: *mut Header) {
    // SAFETY: a node begins with its header, comes from a box, and no other code uses it (contract
    // of this function).
    drop(unsafe { Box::from_raw(header.cast::<Node<Epoch>>()) });
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // SAFETY: records borrow the domain, and so there is none left.
        unsafe { peer_ck_domain_destroy(self.0.0) };
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        // SAFETY: the record is this thread's; sections borrow it, and so there is none left.
        unsafe { peer_ck_unregister(self.0) };
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: begun with this record, by this thread.
        unsafe { peer_ck_leave(self.0) };
    }
}

/// A hash table of numbers that one thread writes at a time, with a lock for the writers.
struct Table {
    table: Opaque,
    lock: Adaptive,
}

/// An empty table with room for twice as many keys.
pub fn table(task: &Task) -> Box<dyn AnySet> {
    let table = peer_ck_ht_new(task.keys.initial.max(8));
    Box::new(Table { table: Opaque(table), lock: Adaptive::new() })
}

impl Table {
    fn write(&self, write: impl FnOnce(*mut c_void) -> bool) -> bool {
        // SAFETY: released by the thread that has acquired it; the code in between does not panic.
        unsafe {
            self.lock.lock(&mut ());
            let result = write(self.table.0);
            self.lock.unlock(&mut ());
            result
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no other thread has the table.
        unsafe { peer_ck_ht_destroy(self.table.0) };
    }
}

impl ConcurrentSet<u64> for Table {
    type Handle<'a> = &'a Self;

    fn handle(&self) -> &Self {
        self
    }
}

impl SetHandle<u64> for &Table {
    fn contains(&mut self, key: &u64) -> bool {
        // SAFETY: the table is there, and may be read while one thread writes.
        unsafe { peer_ck_ht_contains(self.table.0, *key) }
    }

    fn insert(&mut self, key: u64) -> bool {
        // SAFETY: `write` has acquired the lock, so that this is the one thread that writes; the
        // table is there as long as `self`.
        self.write(|table| unsafe { peer_ck_ht_insert(table, key) })
    }

    fn remove(&mut self, key: &u64) -> bool {
        // SAFETY: `write` has acquired the lock, so that this is the one thread that writes; the
        // table is there as long as `self`.
        self.write(|table| unsafe { peer_ck_ht_remove(table, *key) })
    }
}
