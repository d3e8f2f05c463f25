//! The library `timestone` for C and C++: durable transactions, over [`timestone`].
//!
//! ```console
//! $ make install-library PREFIX=$HOME/.local
//! $ export PKG_CONFIG_PATH=$HOME/.local/lib/pkgconfig
//! $ cc program.c $(pkg-config --cflags --libs timestone) -pthread
//! ```
//!
//! The header `manycore/timestone.h` is the reference. Locks, RCU and the rest are in another
//! library, `manycore-capi`, so that a program that wants locks does not load files and journals.

mod config;
mod files;
mod map;
mod member;
mod objects;
mod open;
mod operation;
mod store;

use core::ffi::{CStr, c_char};
use std::cell::RefCell;
use std::ffi::CString;

use timestone::{Error, Stop};

use manycore_capi_base::status::Status;

std::thread_local! {
    /// What the calling thread was told last.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// See `manycore/timestone.h`, as for all of these.
#[unsafe(no_mangle)]
pub extern "C" fn ts_message() -> *const c_char {
    // At the end of the thread its data is already freed, so nothing is reported.
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The status of an error, whose text the thread may ask for.
fn refuse(error: &Error) -> Status {
    let text = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
    // No code asks for it at the end of the thread.
    _ = MESSAGE.try_with(|message| *message.borrow_mut() = text);
    match error {
        Error::Full(_) => Status::Full,
        Error::TooLarge { .. } => Status::TooLarge,
        Error::Poisoned(_) => Status::Poisoned,
        Error::Corrupted { .. } => Status::Corrupted,
        Error::Locked(_) => Status::Locked,
        Error::Version { .. } | Error::UnknownOperation { .. } | Error::ReplayDiffers { .. } => {
            Status::OtherVersion
        }
        Error::Schema { .. } => Status::OtherType,
        _ => Status::Io,
    }
}

/// The status of a result.
fn status(result: Result<(), Error>) -> Status {
    result.map_or_else(|error| refuse(&error), |()| Status::Ok)
}

/// The status of what stops a transaction.
fn stopped(stop: &Stop) -> Status {
    match stop {
        Stop::Error(error) => refuse(error),
        Stop::Conflict(_) => Status::Conflict,
        // Recovery runs an operation again, and it asks for another input than originally.
        _ => Status::Failed,
    }
}

/// A name or a path; otherwise the error `Null` or `Invalid`.
///
/// # Safety
///
/// Null, or a string that ends with a zero.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Status> {
    if text.is_null() {
        return Err(Status::Null);
    }
    // SAFETY: a string, and not null (contract of this function).
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Status::Invalid)
}

/// Writes a result to where the program wants it.
///
/// # Safety
///
/// Null, or a pointer that may be written.
unsafe fn give<T>(out: *mut T, value: T) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: not null, and so it may be written (contract of this function).
    unsafe { out.write(value) };
    Status::Ok
}
