//! Whether the program's calls come to a library of ours, all of them.
//!
//! A reference of any version binds to the first library that has the name without a version, so that it is enough to
//! ask for names.

use core::ffi::{CStr, c_void};

use crate::message::refuse;

/// An exported name with its address in the library.
pub type Export = (&'static CStr, extern "C" fn());

/// Whether this is the copy of the library whose exports are in use, however often it is loaded: it finds its own
/// `marker`, which is exported under this name.
pub fn is_first_copy(name: &CStr, marker: &u8) -> bool {
    let first = default(name);
    first.is_null() || first == core::ptr::from_ref(marker).cast_mut().cast::<c_void>()
}

/// Ends the program unless each export is what its name is bound to. A program in which only some functions come to
/// the library is better not run.
///
/// Both of our libraries have some functions. The one that comes first passes those on to the other, the `sibling`, which is known by
/// the name of its marker.
pub fn check(exports: &[Export], sibling: &CStr) {
    let sibling = base(default(sibling));
    for (name, here) in exports {
        let bound = default(name);
        let is_sibling = || !sibling.is_null() && base(bound) == sibling;
        if bound as usize != *here as usize && !is_sibling() {
            refuse(&[
                name.to_bytes(),
                b" is bound to another library: run without sanitizers and other preloaded libraries",
            ]);
        }
    }
}

/// What a name is bound to in the program, null if to nothing.
fn default(name: &CStr) -> *mut c_void {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Where the library begins that an address is in, null if in none.
fn base(address: *mut c_void) -> *mut c_void {
    // SAFETY: a structure of pointers, for which null is a value; written by the call below.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for.
    let known = !address.is_null() && unsafe { libc::dladdr(address, &raw mut found) } != 0;
    if known { found.dli_fbase } else { core::ptr::null_mut() }
}
