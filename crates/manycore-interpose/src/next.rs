//! The functions behind those that a library exports: glibc's, or those of a library that is preloaded after it.
//!
//! Found on first use by the version that current programs bind to. Looking a symbol up neither allocates nor locks
//! anything that a library of ours provides.

use core::ffi::CStr;

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::message::refuse;

/// The next function of a name.
pub struct Function {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Function {
    /// The function of this name, not looked up yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicUsize::new(0) }
    }

    /// The function's name.
    pub const fn name(&self) -> &'static CStr {
        self.name
    }

    /// Looks it up; says whether there is one.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        // The condition variables have an older, incompatible version under the same name: the default one is asked
        // for by number first. What has had only one version since is found without.
        const VERSIONS: [&CStr; 4] = [c"GLIBC_2.34", c"GLIBC_2.30", c"GLIBC_2.3.2", c"GLIBC_2.2.5"];
        let versioned = VERSIONS.iter().find_map(|version| {
            // SAFETY: both are NUL-terminated; RTLD_NEXT searches the objects after this one.
            let f = unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) };
            (!f.is_null()).then_some(f as usize)
        });
        let address = versioned.or_else(|| {
            // SAFETY: as above.
            let f = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            (!f.is_null()).then_some(f as usize)
        })?;
        // Relaxed: every thread finds the same address.
        self.address.store(address, Ordering::Relaxed);
        Some(address)
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
