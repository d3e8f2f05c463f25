//! Looks at the files of stores that no program has open.

use core::ffi::c_char;

use timestone::inspect;

use super::{give, refuse, text};
use manycore_capi_base::status::Status;

/// `ts_contents_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Contents {
    horizon: u64,
    transactions: u64,
    journal_bytes: u64,
    objects: u64,
    object_bytes: u64,
    is_closed: i32,
    reserved: i32,
}

const _: () = assert!(size_of::<Contents>() == 48);

/// # Safety
///
/// Null or a string; null or a pointer that may be written.
unsafe fn read_contents(
    directory: *const c_char,
    out: *mut Contents,
    read: impl FnOnce(&str) -> timestone::Result<inspect::Contents>,
) -> Status {
    // SAFETY: `directory` is null or a string (contract of this function).
    let directory = match unsafe { text(directory) } {
        Ok(directory) => directory,
        Err(status) => return status,
    };
    let found = match read(directory) {
        Ok(found) => found,
        Err(error) => return refuse(&error),
    };
    let contents = Contents {
        horizon: found.horizon,
        transactions: found.transactions,
        journal_bytes: found.journal_bytes,
        objects: found.objects,
        object_bytes: found.object_bytes,
        is_closed: found.is_closed.into(),
        reserved: 0,
    };
    if out.is_null() {
        return Status::Ok;
    }
    // SAFETY: not null, and so it may be written (contract of this function).
    unsafe { give(out, contents) }
}

/// # Safety
///
/// Null or a string; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_probe(directory: *const c_char, out: *mut Contents) -> Status {
    // SAFETY: `directory` is null or a string, and `out` is null or may be written (contract of
    // this function).
    unsafe { read_contents(directory, out, |path| inspect::probe(path)) }
}

/// # Safety
///
/// As of `ts_probe`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_verify(directory: *const c_char, out: *mut Contents) -> Status {
    // SAFETY: `directory` is null or a string, and `out` is null or may be written (contract of
    // this function).
    unsafe { read_contents(directory, out, |path| inspect::verify(path)) }
}
