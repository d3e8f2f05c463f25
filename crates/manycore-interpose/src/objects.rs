//! The loaded objects, in the order in which the dynamic linker searches them, and the symbols that
//! they define.
//!
//! This module reads the dynamic linker's list and each object's symbol table without `dlsym`,
//! because `dlsym` locks, and allocates a message when it finds nothing. The program's allocator
//! may be in the middle of its own initialisation then, and our call a part of that.
//!
//! # Which objects are safe to read
//!
//! The list begins with the objects that were loaded before any code ran, and these are never
//! unloaded. Libraries that are opened later come at its end, and may be unloaded at any time. A
//! walk of this module ends after it has passed both libc and the dynamic linker, which are among
//! the first objects.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::symbols::{Dynamic, Symbols, Version};

/// An entry of the dynamic linker's list: `struct link_map` of `<link.h>`. The linker changes the
/// links while others refer to the entry, when it loads and unloads objects.
#[repr(C)]
struct LinkMap {
    base: usize,
    path: *const c_char,
    dynamic: *const Dynamic,
    next: AtomicPtr<LinkMap>,
    previous: AtomicPtr<LinkMap>,
}

/// The list's head: `struct r_debug` of `<link.h>`.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const LinkMap,
}

/// The dynamic linker's name.
#[cfg(target_arch = "x86_64")]
const LOADER: &CStr = c"ld-linux-x86-64.so.2";
#[cfg(target_arch = "aarch64")]
const LOADER: &CStr = c"ld-linux-aarch64.so.1";

unsafe extern "C" {
    /// The dynamic linker's data for debuggers. It is initialised before any other code runs.
    static _r_debug: Debug;
}

/// An object that was loaded when the program started.
#[derive(Clone, Copy)]
pub struct Object(&'static LinkMap);

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }
}

/// The objects from the first one, the program, to the last of libc and the dynamic linker.
pub fn in_search_order() -> impl Iterator<Item = Object> {
    // SAFETY: the dynamic linker has set it before any code of others runs, and does not change it
    // afterwards.
    let mut next = unsafe { _r_debug.first };
    let mut awaited = [c"libc.so.6", LOADER].map(Some);
    core::iter::from_fn(move || {
        if awaited == [None; 2] {
            return None;
        }
        // SAFETY: null, or an entry of the list. The walk ends after two objects that were loaded
        // when the program started, and the entries before them are never unloaded. Only an entry's
        // links change, which are atomic here.
        let object = Object(unsafe { next.as_ref() }?);
        let name = object.soname();
        awaited = awaited.map(|other| other.filter(|_| other != name));
        // Relaxed: an entry that comes next was there before the program started, or is not
        // followed.
        next = object.0.next.load(Ordering::Relaxed);
        Some(object)
    })
}

/// The object that this code is in.
pub fn own() -> Option<Object> {
    let dynamic: *const Dynamic;
    // SAFETY: the instruction computes the address of this object's own dynamic section, which each
    // object has, and reads no memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("lea {}, [rip + _DYNAMIC]", out(reg) dynamic, options(nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "adrp {0}, _DYNAMIC",
            "add {0}, {0}, :lo12:_DYNAMIC",
            out(reg) dynamic,
            options(nomem, nostack)
        );
    }
    in_search_order().find(|object| object.0.dynamic == dynamic)
}

/// The objects that are searched after this one.
pub fn after(object: Object) -> impl Iterator<Item = Object> {
    in_search_order().skip_while(move |other| *other != object).skip(1)
}

/// The first definition of a name in these objects, by its default version.
pub fn find(mut objects: impl Iterator<Item = Object>, name: &CStr) -> Option<(Object, usize)> {
    objects.find_map(|object| Some((object, object.definition(name)?)))
}

/// Where the program's references to a name lead.
pub fn address(name: &CStr) -> Option<usize> {
    find(in_search_order(), name).map(|(_, address)| address)
}

impl Object {
    /// The object of this entry of the dynamic linker's list, if it is never unloaded.
    pub fn of_link_map(entry: *const ()) -> Option<Self> {
        in_search_order().find(|object| core::ptr::from_ref(object.0).cast() == entry)
    }

    /// Whether this is glibc: libc itself, or one of the separate libraries that it had until
    /// version 2.34.
    pub fn is_glibc(self) -> bool {
        const NAMES: [&CStr; 3] = [c"libc.so.6", c"libpthread.so.0", c"libdl.so.2"];
        self.soname().is_some_and(|name| NAMES.contains(&name))
    }

    /// The file from which it was loaded; empty for the program itself.
    pub fn path(self) -> &'static CStr {
        // SAFETY: a NUL-terminated string of the dynamic linker's, which stays as long as the
        // object.
        unsafe { CStr::from_ptr(self.0.path) }
    }

    fn soname(self) -> Option<&'static CStr> {
        self.symbols().soname()
    }

    /// Where a name is defined, by its default version.
    pub fn definition(self, name: &CStr) -> Option<usize> {
        self.symbols().all(name, Version::Default).next()
    }

    /// Whether a name is defined at this address, by any version.
    pub fn defines_at(self, name: &CStr, address: usize) -> bool {
        self.symbols().all(name, Version::Any).any(|defined| defined == address)
    }

    fn symbols(self) -> Symbols {
        // SAFETY: an object that stays loaded, which the dynamic linker has mapped at this base.
        unsafe { Symbols::new(self.0.base, self.0.dynamic) }
    }
}
