//! The functions behind those that a library exports: glibc's, or those of a library that is
//! preloaded later.
//!
//! Each is looked up when the library starts, or at its first use if that comes before. The look-up
//! neither locks nor allocates, see [`objects`].

use core::ffi::CStr;

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::message::refuse;
use crate::objects;

/// The next function of a name.
pub struct Function {
    name: &'static CStr,
    /// Whether only glibc's own will do.
    is_glibcs: bool,
    address: AtomicUsize,
}

impl Function {
    /// glibc's own function of this name, not looked up yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, is_glibcs: true, address: AtomicUsize::new(0) }
    }

    /// The function of this name in the next library, whichever that is; not looked up yet.
    pub const fn of_any_library(name: &'static CStr) -> Self {
        Self { name, is_glibcs: false, address: AtomicUsize::new(0) }
    }

    /// Looks it up; returns whether there is one.
    #[cold]
    pub fn find(&self) -> Option<usize> {
        let found = match objects::own() {
            Some(own) if !self.is_glibcs => objects::find(objects::after(own), self.name),
            // Also in a copy of the library that was opened later, which the program's calls do not
            // reach.
            _ => objects::find(objects::in_search_order().filter(|o| o.is_glibc()), self.name),
        };
        let address = found.map(|(_, address)| address);
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
}
