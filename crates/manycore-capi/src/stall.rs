//! Reports of threads that keep memory from being used again.

use core::ffi::c_void;
use core::time::Duration;

/// `manycore_stall_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Stall {
    thread: u32,
    reserved: u32,
    blocked_ns: u64,
    bytes: usize,
}

const _: () = assert!(size_of::<Stall>() == 24);

/// The program's function that takes reports.
pub type Report = unsafe extern "C-unwind" fn(*const Stall, *mut c_void);

/// The program's pointer, which that function is called with.
struct Context(*mut c_void);

// SAFETY: the address is only passed on; by the header, the program's function takes it in any
// thread.
unsafe impl Send for Context {}
// SAFETY: the address is only passed on; by the header, the program's function takes it in several
// threads at a time.
unsafe impl Sync for Context {}

impl Stall {
    pub fn new(thread: u32, blocked_for: Duration, bytes: usize) -> Self {
        let blocked_ns = u64::try_from(blocked_for.as_nanos()).unwrap_or(u64::MAX);
        Self { thread, reserved: 0, blocked_ns, bytes }
    }

    /// What calls the program's function, if there is one.
    pub fn reporter(
        report: Option<Report>,
        context: *mut c_void,
    ) -> Option<impl Fn(Self) + Send + Sync> {
        let (report, context) = (report?, Context(context));
        Some(move |stall: Self| {
            let context = &context;
            // SAFETY: the program has given the function to be called with this context, in any
            // thread, by the header; the stall is there during the call.
            unsafe { report(&raw const stall, context.0) };
        })
    }
}
