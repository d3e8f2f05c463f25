//! The functions behind those that a library exports: glibc's, or those of a library that is preloaded after it.
//!
//! Found on first use by the version that current programs bind to. Looking a symbol up neither allocates nor locks
//! anything that a library of ours provides.

use core::ffi::{CStr, c_void};

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::message::refuse;

/// The next function of a name.
pub struct Function {
    name: &'static CStr,
    /// Whether glibc has an older, incompatible version under the same name.
    has_older: bool,
    address: AtomicUsize,
}

impl Function {
    /// The function of this name, not looked up yet; glibc's own, and not an older version.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, has_older: true, address: AtomicUsize::new(0) }
    }

    /// The function of this name, not looked up yet, in whatever library comes next: all its versions mean the same.
    pub const fn of_any_library(name: &'static CStr) -> Self {
        Self { name, has_older: false, address: AtomicUsize::new(0) }
    }

    /// Looks it up; says whether there is one.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        // The condition variables have an older, incompatible version under the same name: the default one is asked
        // for by number.
        const VERSIONS: [&CStr; 4] = [c"GLIBC_2.34", c"GLIBC_2.30", c"GLIBC_2.3.2", c"GLIBC_2.2.5"];
        let address = if self.has_older {
            VERSIONS.iter().find_map(|version| {
                // SAFETY: both are NUL-terminated; RTLD_NEXT searches the objects after this one.
                present(unsafe {
                    libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr())
                })
            })
        } else {
            // SAFETY: as above.
            present(unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) })
        };
        // Relaxed: every thread finds the same address.
        self.address.store(address.unwrap_or(0), Ordering::Relaxed);
        address
    }

    #[cold]
    fn find_or_refuse(&self) -> usize {
        self.find().unwrap_or_else(|| {
            refuse(&[b"glibc has no ", self.name.to_bytes(), b": this C library is not supported"])
        })
    }

    /// The function's address. Ends the program if there is none.
    #[inline]
    pub fn address(&self) -> usize {
        // Relaxed: as in `find`.
        match self.address.load(Ordering::Relaxed) {
            0 => self.find_or_refuse(),
            address => address,
        }
    }

    /// Where the address is kept, once it has been looked up: for code that jumps there.
    pub const fn place(&self) -> &AtomicUsize {
        &self.address
    }
}

fn present(address: *mut c_void) -> Option<usize> {
    (!address.is_null()).then_some(address as usize)
}
