//! Waits at which a thread can be cancelled: `cancel.c` implements them.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;

use libc::timespec;

unsafe extern "C-unwind" {
    /// Calls `body(argument)`, and `abandon(argument)` if the thread is cancelled in there.
    ///
    /// # Safety
    ///
    /// `body` and the functions that it calls have nothing to drop wherever they can be cancelled.
    #[link_name = "manycore_guard"]
    pub fn guard(
        body: unsafe extern "C-unwind" fn(*mut c_void),
        abandon: unsafe extern "C-unwind" fn(*mut c_void),
        argument: *mut c_void,
    );

    /// Sleeps while `*word == expected`. The thread can be cancelled at any instruction. Returns 0
    /// or an error number, and leaves `errno` alone.
    ///
    /// # Safety
    ///
    /// Only to be called from a body of [`guard`]; the word and the deadline outlive the call.
    #[link_name = "manycore_wait_open"]
    pub fn wait_open(
        word: *const AtomicU32,
        wall: c_int,
        expected: u32,
        until: *const timespec,
    ) -> c_int;
}
