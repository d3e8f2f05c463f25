//! Who called: the return addresses of a lock function's callers.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use manycore_interpose::objects;
use manycore_profile::layout::FRAMES;

/// Whether the unwinder finds its tables without a lock (`_dl_find_object`, glibc 2.35): otherwise it would take the
/// loader's, perhaps while the loader waits for a lock of the program.
static UNWINDS_FREELY: AtomicBool = AtomicBool::new(false);

/// Looks at what the C library can do. To be called from the constructor.
pub fn prepare() {
    let found = objects::address(c"_dl_find_object").is_some();
    // Relaxed: read by threads that start later, or that do without.
    UNWINDS_FREELY.store(found, Ordering::Relaxed);
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

const CONTINUE: c_int = 0;
const STOP: c_int = 4;

/// Return addresses, innermost first, 0 behind the last.
pub type Frames = [u64; FRAMES];

struct Walk<'a> {
    caller: u64,
    found: usize,
    frames: &'a mut [u64],
}

/// The return addresses from `caller` outwards, at most so many.
pub fn backtrace(caller: usize, depth: usize) -> Frames {
    let mut frames = [0; FRAMES];
    // Relaxed: see `prepare`.
    if UNWINDS_FREELY.load(Ordering::Relaxed) {
        let mut walk = Walk { caller: caller as u64, found: 0, frames: &mut frames[..depth] };
        // SAFETY: `step` expects a `Walk`, which outlives the call.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    }
    // Whatever the unwinder could not see, the caller is known.
    frames[0] = caller as u64;
    frames
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the context is the unwinder's, the walk that of `backtrace`.
    let (address, walk) = unsafe { (_Unwind_GetIP(context) as u64, &mut *walk.cast::<Walk>()) };
    if walk.found > 0 || address == walk.caller {
        walk.frames[walk.found] = address;
        walk.found += 1;
    }
    if walk.found == walk.frames.len() { STOP } else { CONTINUE }
}
