//! The lock-free hash table of liburcu.

use std::ffi::c_void;

use manycore_bench::set::{AnySet, Task};
use manycore_traits::{ConcurrentSet, SetHandle};

use crate::Opaque;
use crate::urcu::Registered;

unsafe extern "C" {
    safe fn peer_memb_register();
    safe fn peer_memb_unregister();
    safe fn peer_lfht_new(buckets: usize) -> *mut c_void;
    fn peer_lfht_contains(table: *mut c_void, key: u64) -> bool;
    fn peer_lfht_insert(table: *mut c_void, key: u64) -> bool;
    fn peer_lfht_remove(table: *mut c_void, key: u64) -> bool;
    fn peer_lfht_clear(table: *mut c_void);
    fn peer_lfht_destroy(table: *mut c_void);
}

struct Table(Opaque);

struct Handle<'a> {
    table: &'a Table,
    _registered: Registered,
}

/// An empty table with a bucket for each key.
pub fn table(task: &Task) -> Box<dyn AnySet> {
    let table = peer_lfht_new(task.keys.initial as usize);
    assert!(!table.is_null(), "liburcu makes no table");
    Box::new(Table(Opaque(table)))
}

fn register() -> Registered {
    Registered::new(peer_memb_register, peer_memb_unregister)
}

impl Drop for Table {
    fn drop(&mut self) {
        let registered = register();
        // SAFETY: no other thread has it, and this thread has registered.
        unsafe { peer_lfht_clear(self.0.0) };
        drop(registered);
        // SAFETY: no other thread has it, and it is empty.
        unsafe { peer_lfht_destroy(self.0.0) };
    }
}

impl ConcurrentSet<u64> for Table {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        Handle { table: self, _registered: register() }
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        // SAFETY: the table is there, and this thread has registered.
        unsafe { peer_lfht_contains(self.table.0.0, *key) }
    }

    fn insert(&mut self, key: u64) -> bool {
        // SAFETY: the table is there as long as `self`, and this thread has registered.
        unsafe { peer_lfht_insert(self.table.0.0, key) }
    }

    fn remove(&mut self, key: &u64) -> bool {
        // SAFETY: the table is there as long as `self`, and this thread has registered.
        unsafe { peer_lfht_remove(self.table.0.0, *key) }
    }
}
