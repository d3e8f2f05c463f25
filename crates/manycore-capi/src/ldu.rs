//! `manycore/ldu.h`: deferred update of objects that carry their own node, over [`manycore::ldu`].

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::sync::Arc;

use manycore::ldu::drain;
use manycore::ldu::{Chain, Global, Link, Node, Operation, PerCore, Queue, Rooted, Table, Target};

use manycore_capi_base::status::Status;

// The program has 24 bytes for it; all zero bytes are a valid node.
const _: () = assert!(size_of::<Node>() == 24 && align_of::<Node>() == 8);

/// A structure's log: `manycore_ldu_t`.
pub enum Ldu {
    Global(Global),
    PerCore(PerCore),
    Rooted(Rooted<Arc<Table>>),
}

// SAFETY: a log is one of the three for its whole life, and each of those is a `Queue`.
unsafe impl Queue for Ldu {
    #[inline]
    unsafe fn push(&self, link: Link) {
        // SAFETY: the entry is in no queue and its node stays (contract of this function), as the
        // inner queue requires.
        unsafe {
            match self {
                Self::Global(queue) => queue.push(link),
                Self::PerCore(queue) => queue.push(link),
                Self::Rooted(queue) => queue.push(link),
            }
        }
    }

    fn take(&self, each: impl FnMut(Chain)) {
        match self {
            Self::Global(queue) => queue.take(each),
            Self::PerCore(queue) => queue.take(each),
            Self::Rooted(queue) => queue.take(each),
        }
    }
}

/// What a drain did: `manycore_ldu_drained_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Drained {
    entries: u64,
    applied: u64,
}

/// What is done with what was logged: `manycore_ldu_target_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Callbacks {
    apply: Option<unsafe extern "C-unwind" fn(*mut c_void, c_int, *mut Node)>,
    release: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut Node)>,
}

const _: () = assert!(size_of::<Callbacks>() == 16 && size_of::<Drained>() == 16);

/// The program's structure, while its log is drained.
struct Structure {
    apply: unsafe extern "C-unwind" fn(*mut c_void, c_int, *mut Node),
    release: unsafe extern "C-unwind" fn(*mut c_void, *mut Node),
    structure: *mut c_void,
}

impl Target for Structure {
    fn apply(&mut self, operation: Operation, node: NonNull<Node>) {
        // SAFETY: the program has given the function and the structure for this (contract of
        // `manycore_ldu_drain`); the node is there until it is released.
        unsafe { (self.apply)(self.structure, operation as c_int, node.as_ptr()) };
    }

    fn release(&mut self, node: NonNull<Node>) {
        // SAFETY: the program has given the function and the structure for this (contract of
        // `manycore_ldu_drain`); the node's last entry was taken, so that the library does not
        // touch it any more.
        unsafe { (self.release)(self.structure, node.as_ptr()) };
    }
}

/// See `manycore/ldu.h`, as for all of these.
///
/// # Safety
///
/// Null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_create(arrangement: c_int, out: *mut *mut Ldu) -> Status {
    let ldu = match arrangement {
        0 => Ldu::Global(Global::new()),
        1 => Ldu::PerCore(PerCore::new()),
        _ => return Status::Invalid,
    };
    // SAFETY: `out` is null or may be written (contract of this function).
    unsafe { give(out, ldu) }
}

/// # Safety
///
/// Null or a table; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_create_in(
    table: *const Arc<Table>,
    out: *mut *mut Ldu,
) -> Status {
    // SAFETY: `table` is null or leads to a table (contract of this function).
    let Some(table) = (unsafe { table.as_ref() }) else { return Status::Null };
    // SAFETY: `out` is null or may be written (contract of this function).
    unsafe { give(out, Ldu::Rooted(Rooted::new(Arc::clone(table)))) }
}

/// # Safety
///
/// Null, or a pointer that may be written.
unsafe fn give<T>(out: *mut *mut T, value: T) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: `out` is not null, and so may be written (contract of this function).
    unsafe { out.write(Box::into_raw(Box::new(value))) };
    Status::Ok
}

/// # Safety
///
/// Null, or an unused log without entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_destroy(ldu: *mut Ldu) -> Status {
    // SAFETY: `ldu` is null or from `give`, without entries, and no code uses it any more (contract
    // of this function).
    unsafe { take_back(ldu) }
}

/// # Safety
///
/// Null, or from [`give`]; no code uses it any more.
unsafe fn take_back<T>(value: *mut T) -> Status {
    if value.is_null() {
        return Status::Null;
    }
    // SAFETY: `value` is not null, and so from `give`, which has made a box of it, and no code uses
    // it any more (contract of this function).
    drop(unsafe { Box::from_raw(value) });
    Status::Ok
}

/// # Safety
///
/// Null, or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_table_create(
    places: usize,
    out: *mut *mut Arc<Table>,
) -> Status {
    if !(1..=1 << 20).contains(&places) {
        return Status::Invalid;
    }
    // SAFETY: `out` is null or may be written (contract of this function).
    unsafe { give(out, Arc::new(Table::new(places))) }
}

/// # Safety
///
/// Null, or from [`manycore_ldu_table_create`], and not destroyed yet. Logs in it keep it alive as
/// long as they exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_table_destroy(table: *mut Arc<Table>) -> Status {
    // SAFETY: `table` is null or from `give`, and was not destroyed (contract of this function).
    unsafe { take_back(table) }
}

/// # Safety
///
/// Null or a log; null or a node of the caller's, as of [`Node::try_log`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_insert(ldu: *const Ldu, node: *mut Node) -> Status {
    // SAFETY: log and node are null or the program's, which keeps the contract of `Node::try_log`
    // (contract of this function).
    unsafe { log(ldu, node, Operation::Insert) }
}

/// # Safety
///
/// As of [`manycore_ldu_insert`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_remove(ldu: *const Ldu, node: *mut Node) -> Status {
    // SAFETY: log and node are null or the program's, which keeps the contract of `Node::try_log`
    // (contract of this function).
    unsafe { log(ldu, node, Operation::Remove) }
}

/// # Safety
///
/// As of [`manycore_ldu_insert`].
unsafe fn log(ldu: *const Ldu, node: *mut Node, operation: Operation) -> Status {
    // SAFETY: `ldu` is null or leads to a log (contract of this function).
    let (Some(ldu), Some(node)) = (unsafe { ldu.as_ref() }, NonNull::new(node)) else {
        return Status::Null;
    };
    // SAFETY: the node is the program's, which keeps the contract of `Node::try_log`, always with
    // this log (contract of this function).
    if unsafe { Node::try_log(node, operation, ldu) } { Status::Ok } else { Status::Repeated }
}

/// # Safety
///
/// The contract of [`manycore_ldu_insert`]. The object was not inserted, or was removed since, and
/// no thread uses the node any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_retire(ldu: *const Ldu, node: *mut Node) -> Status {
    // SAFETY: `ldu` is null or leads to a log (contract of this function).
    let (Some(ldu), Some(node)) = (unsafe { ldu.as_ref() }, NonNull::new(node)) else {
        return Status::Null;
    };
    // SAFETY: the node is the program's, which has not inserted the object, or has removed it, and
    // does not touch the node any more (contract of this function).
    unsafe { Node::retire(node, ldu) };
    Status::Ok
}

/// # Safety
///
/// Null or a log; null or callbacks that may be called with the structure; null or a pointer that
/// may be written. No other thread drains the log meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_ldu_drain(
    ldu: *const Ldu,
    target: *const Callbacks,
    structure: *mut c_void,
    drained: *mut Drained,
) -> Status {
    // SAFETY: each is null or leads to an object of its type (contract of this function).
    let (Some(ldu), Some(target)) = (unsafe { (ldu.as_ref(), target.as_ref()) }) else {
        return Status::Null;
    };
    let (Some(apply), Some(release)) = (target.apply, target.release) else { return Status::Null };
    // SAFETY: no other thread drains the log meanwhile, and the callbacks may be called with the
    // structure (contract of this function).
    let done = unsafe { drain(ldu, &mut Structure { apply, release, structure }) };
    if !drained.is_null() {
        // SAFETY: `drained` is not null, and so may be written (contract of this function).
        unsafe { drained.write(Drained { entries: done.entries, applied: done.applied }) };
    }
    Status::Ok
}
