//! Which loaded object an address is in, and where that has its tables for unwinding.
//!
//! `_dl_find_object` says so without a lock; glibc has it since version 2.35. What older ones have,
//! `dl_iterate_phdr`, takes the loader's lock, perhaps while the loader waits for a lock of the
//! program. So it is asked once, at the start, for the objects that are never unloaded.

use core::ffi::{c_int, c_void};
use core::iter::Take;
use core::slice::{self, Iter};
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{PT_GNU_EH_FRAME, PT_LOAD, dl_phdr_info};
use manycore_interpose::objects;

// Relaxed throughout: what `prepare` stores is read by threads that start later, or that do
// without.

/// `_dl_find_object`; 0 if the C library has none.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Without it, the objects that were loaded when the program started.
static FIRST: [First; 256] = [const { First::none() }; 256];

/// An object that is never unloaded: words of [`Loaded`].
struct First {
    start: AtomicUsize,
    end: AtomicUsize,
    eh_frame_header: AtomicUsize,
}

impl First {
    const fn none() -> Self {
        Self {
            start: AtomicUsize::new(usize::MAX),
            end: AtomicUsize::new(0),
            eh_frame_header: AtomicUsize::new(0),
        }
    }
}

/// Finds out what the C library can do.
pub fn prepare() {
    if let Some(found) = objects::address(c"_dl_find_object") {
        FIND_OBJECT.store(found, Ordering::Relaxed);
        return;
    }
    let mut free: Free = FIRST.iter().take(objects::in_search_order().count());
    // SAFETY: `note` gets a pointer to a `Free`, which lives until this call has returned and which
    // nothing else uses meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut free).cast()) };
}

type Free = Take<Iter<'static, First>>;

/// Notes an object in the next free place, if there is one.
unsafe extern "C" fn note(object: *mut dl_phdr_info, _: usize, free: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const STOP: c_int = 1;
    // SAFETY: the pointer is to the `Free` of `prepare`, which nothing else uses before
    // `dl_iterate_phdr` has returned, and calls of this function follow one another.
    let Some(first) = unsafe { &mut *free.cast::<Free>() }.next() else { return STOP };
    // SAFETY: the loader passes an initialised description, which stays as it is until this call
    // has returned.
    let object = unsafe { &*object };
    // SAFETY: `dlpi_phdr` is the first of `dlpi_phnum` program headers, which stay mapped and
    // unchanged as long as the object is loaded: the loader holds its lock during this call.
    let headers = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    for header in headers {
        let start = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
        match header.p_type {
            PT_LOAD => {
                first.start.fetch_min(start, Ordering::Relaxed);
                first.end.fetch_max(start + header.p_memsz as usize, Ordering::Relaxed);
            }
            PT_GNU_EH_FRAME => first.eh_frame_header.store(start, Ordering::Relaxed),
            _ => {}
        }
    }
    GO_ON
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
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    if find == 0 {
        return first(address).map(Some);
    }
    let mut found = Loaded::default();
    // SAFETY: glibc's function of this name, whose address `prepare` has noted, has this signature.
    let find: unsafe extern "C" fn(*const c_void, *mut Loaded) -> c_int =
        unsafe { core::mem::transmute(find) };
    // SAFETY: any address may be passed, and the answer, twelve words, has room here.
    Some((unsafe { find(address as *const c_void, &raw mut found) } == 0).then_some(found))
}

/// The object that has this address and was loaded when the program started.
fn first(address: usize) -> Option<Loaded> {
    let word = |word: &AtomicUsize| word.load(Ordering::Relaxed);
    let has = |first: &&First| (word(&first.start)..word(&first.end)).contains(&address);
    let first = FIRST.iter().find(has)?;
    let (start, end) = (word(&first.start), word(&first.end));
    Some(Loaded { start, end, eh_frame_header: word(&first.eh_frame_header), ..Loaded::default() })
}
