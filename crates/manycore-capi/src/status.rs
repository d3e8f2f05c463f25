//! `manycore/status.h`: the text of a status, and the version.

use core::ffi::{c_char, c_int};

use manycore_capi_base::status::Status;

/// The text of a status. It is never null, and valid as long as the library is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_strerror(status: c_int) -> *const c_char {
    Status::text(status).as_ptr()
}

/// The version of the running library, which may differ from that of the header: 10,000 times the
/// first number, 100 times the second, and the third.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_version() -> u32 {
    const fn number(text: &str) -> u32 {
        match u32::from_str_radix(text, 10) {
            Ok(number) => number,
            Err(_) => panic!("a version is made of numbers"),
        }
    }
    const MAJOR: u32 = number(env!("CARGO_PKG_VERSION_MAJOR"));
    const MINOR: u32 = number(env!("CARGO_PKG_VERSION_MINOR"));
    const PATCH: u32 = number(env!("CARGO_PKG_VERSION_PATCH"));
    10_000 * MAJOR + 100 * MINOR + PATCH
}
