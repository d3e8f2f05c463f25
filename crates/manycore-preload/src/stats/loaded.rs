//! Which loaded object an address is in, and where that has its tables for unwinding.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use manycore_interpose::objects;

/// `_dl_find_object`, which takes no lock, and which glibc has since version 2.35. What it does
/// without, `dl_iterate_phdr`, takes the loader's lock, perhaps while the loader waits for a lock
/// of the program.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Looks at what the C library can do.
pub fn prepare() {
    let found = objects::address(c"_dl_find_object").unwrap_or(0);
    // Relaxed: read by threads that start later, or that do without.
    FIND_OBJECT.store(found, Ordering::Relaxed);
}

/// `struct dl_find_object` of `<dlfcn.h>`, with room for what later versions add.
#[repr(C)]
#[derive(Default)]
pub struct Loaded {
    flags: u64,
    /// What is mapped around the address: of an object with gaps, one of its parts.
    start: usize,
    end: usize,
    link_map: usize,
    /// Where its tables for unwinding begin, the segment `.eh_frame_hdr`; 0 if there are none.
    pub eh_frame_header: usize,
    reserved: [usize; 11],
}

/// What is mapped from an address to the end of the loaded object, or of this part of it; `None` if
/// there is no object.
///
/// # Safety
///
/// The object stays loaded as long as the bytes are used, and only what its tables for unwinding
/// have or refer to is read.
pub unsafe fn bytes_from(address: usize) -> Option<&'static [u8]> {
    let end = of(address)??.end;
    // SAFETY: the loader has mapped this object from `address` to `end`, and it stays mapped as
    // long as it is loaded, which the caller has ensured.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, end - address) })
}

/// Whether an address is in the program or in a loaded library; `None` if that cannot be determined
/// without a lock.
pub fn is_in_library(address: u64) -> Option<bool> {
    of(address as usize).map(|object| object.is_some())
}

/// The loaded object that has this address: `Some(None)` if there is none, and `None` if that
/// cannot be determined without a lock.
pub fn of(address: usize) -> Option<Option<Loaded>> {
    // Relaxed: see `prepare`.
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    if find == 0 {
        return None;
    }
    let mut found = Loaded::default();
    // SAFETY: glibc's function of this name, whose address `prepare` has noted, has this signature.
    let find: unsafe extern "C" fn(*const c_void, *mut Loaded) -> c_int =
        unsafe { core::mem::transmute(find) };
    // SAFETY: any address may be passed, and the answer, twelve words, has room here.
    Some((unsafe { find(address as *const c_void, &raw mut found) } == 0).then_some(found))
}
