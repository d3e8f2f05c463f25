//! The callers: the return addresses of a lock function's callers.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use manycore_interpose::objects;
use manycore_stats::{FRAMES, FRAMES_OF_LOCK};

/// `_dl_find_object`, by which the unwinder finds its tables without a lock since glibc 2.35.
/// Without it, the unwinder would take the loader's lock, perhaps while the loader waits for a lock
/// of the program.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Looks at what the C library can do.
pub fn prepare() {
    let found = objects::address(c"_dl_find_object").unwrap_or(0);
    // Relaxed: read by threads that start later, or that do without.
    FIND_OBJECT.store(found, Ordering::Relaxed);
}

/// Makes the unwinder initialise itself, as at its first use. That ends with a wake-up, which a
/// child may not be allowed later. Called from the constructor and not earlier, since a sanitizer's
/// `pthread_once` needs a sanitizer that has started.
pub fn use_once() {
    backtrace(0, 1);
}

/// Whether an address is in the program or in a loaded library; `None` if that cannot be determined
/// without a lock.
pub fn is_in_library(address: u64) -> Option<bool> {
    /// Room for the result: twelve words, none of which is used.
    type ObjectInfo = [usize; 16];
    // Relaxed: see `prepare`.
    let find = FIND_OBJECT.load(Ordering::Relaxed);
    if find == 0 {
        return None;
    }
    let mut found: ObjectInfo = [0; 16];
    // SAFETY: glibc's function of this name, whose address `prepare` has noted, has this signature.
    let find: unsafe extern "C" fn(*const c_void, *mut ObjectInfo) -> c_int =
        unsafe { core::mem::transmute(find) };
    // SAFETY: any address may be passed, and the answer, twelve words, has room here.
    Some(unsafe { find(address as *const c_void, &raw mut found) } == 0)
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

const CONTINUE: c_int = 0;
const STOP: c_int = 4;

/// Return addresses, innermost first, 0 behind the last.
pub type Frames = [u64; FRAMES];

/// A stack, and where it is.
pub struct Stack {
    /// The return addresses.
    pub frames: Frames,
    /// The addresses of the first return addresses on the stack; 0 if they are not known.
    pub places: [usize; FRAMES_OF_LOCK],
    /// How many of them were found there.
    pub found: usize,
}

struct Walk<'a> {
    caller: u64,
    depth: usize,
    stack: &'a mut Stack,
}

/// The return addresses from `caller` outwards, at most `depth`.
pub fn backtrace(caller: usize, depth: usize) -> Stack {
    let mut stack = Stack { frames: [0; FRAMES], places: [0; FRAMES_OF_LOCK], found: 0 };
    // Relaxed: see `prepare`.
    if FIND_OBJECT.load(Ordering::Relaxed) != 0 {
        let depth = depth.min(FRAMES);
        let mut walk = Walk { caller: caller as u64, depth, stack: &mut stack };
        // SAFETY: `step` expects a `Walk`, which outlives the call.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    }
    // Whatever the unwinder could not see, the caller is known.
    stack.frames[0] = caller as u64;
    stack
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the context is the one that the unwinder passes to a step, and `walk` the argument of
    // `backtrace`, which outlives the call.
    let (address, walk) = unsafe { (_Unwind_GetIP(context) as u64, &mut *walk.cast::<Walk>()) };
    let stack = &mut *walk.stack;
    // After the outermost frame the unwinder returns another one without any information.
    if address != 0 && (stack.found > 0 || address == walk.caller) {
        stack.frames[stack.found] = address;
        if let Some(place) = stack.places.get_mut(stack.found) {
            // SAFETY: `context` is the one that the unwinder has passed to this callback, and it is
            // valid during the call.
            let frame = unsafe { _Unwind_GetCFA(context) };
            // On x86-64 a call leaves its return address right below the frame to which it returns.
            // On AArch64 the called function keeps it anywhere.
            *place = if cfg!(target_arch = "x86_64") { frame - size_of::<usize>() } else { 0 };
        }
        stack.found += 1;
    }
    if stack.found == walk.depth { STOP } else { CONTINUE }
}
