//! Whether the program's calls come to a library of ours, all of them.
//!
//! A reference of any version binds to the first object that has the name without a version, so
//! looking up names is enough. An address in a table of this library's own would not show the same:
//! the dynamic linker fills it in by the same search as the program's references.

use core::ffi::CStr;

use crate::message::refuse;
use crate::objects;

/// Whether this is the copy of the library whose exports are in use, even if it is loaded several
/// times: it looks up its own `marker`, which is exported under this name.
pub fn is_first_copy(name: &CStr, marker: &u8) -> bool {
    objects::address(name).is_none_or(|first| first == core::ptr::from_ref(marker).addr())
}

/// Ends the program if one of these names always leads past this library, to glibc.
///
/// Any other object to which a name leads is in front of this library, since this one exports all
/// of them. It may be a sanitizer's runtime or a wrapper, which wraps the functions behind it, or
/// our other library, which passes the call on.
pub fn check(exports: &[&CStr]) {
    for name in exports {
        let bound = objects::find(objects::in_search_order(), name);
        if bound.is_none_or(|(object, _)| object.is_glibc()) {
            refuse(&[
                name.to_bytes(),
                b" leads past this library, which has to be loaded before libc: start the program by `manycore run`",
            ]);
        }
    }
    refuse_late_sanitizer();
}

/// A sanitizer that observes calls of the replaced functions has to come first. Behind this library
/// it sees no calls, and reports races that do not exist.
fn refuse_late_sanitizer() {
    let late = objects::own().into_iter().flat_map(objects::after);
    if let Some((sanitizer, _)) = objects::find(late, c"__tsan_init") {
        refuse(&[
            b"this program's ThreadSanitizer is loaded after this library, and would not see its locks: give manycore the program itself, ",
            b"not a script that starts it, or preload ",
            sanitizer.path().to_bytes(),
            b" first",
        ]);
    }
}
