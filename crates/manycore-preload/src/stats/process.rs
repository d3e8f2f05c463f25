//! The beginning and the end of the process' statistics, and the effects of a fork on them.

use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use manycore::sync::{clock, thread};

use super::{loaded, mapping, modules, queues, records, slabs, this_thread, thread_entries};

/// Begins to count, in a file in the directory.
pub fn open(directory: &CStr, lock: &[u8]) {
    loaded::prepare();
    thread_entries::prepare();
    this_thread::prepare();
    mapping::open(directory, lock);
}

/// Called in the child of a fork, by its only thread.
pub fn forked() {
    if !mapping::is_there() {
        return;
    }
    records::forked();
    queues::forked();
    slabs::forked();
    modules::forked();
    mapping::forked();
    thread::local().extension.set(null_mut());
    thread_entries::forked();
}

/// Notes that the process ends in an orderly way.
pub extern "C" fn ended() {
    if let Some(mapping) = mapping::opened() {
        // Relaxed: a time that stands for itself.
        mapping.header.ended.store(clock::now(), Ordering::Relaxed);
        thread_entries::process_ends(mapping);
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = ended;
