//! What statistics ask the kernel while the program runs.
//!
//! In seccomp's strict mode the kernel ends a thread that makes such a call. There no call is made,
//! and the answer is the one that a refusing filter would give. That costs some counts.

use core::sync::atomic::{AtomicBool, Ordering};

static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// From now on this process and its children make no such calls.
pub fn may_not_ask() {
    // Relaxed: the thread that is about to be forbidden sets it. Other threads may still ask, but
    // need not.
    FORBIDDEN.store(true, Ordering::Relaxed);
}

/// Whether the kernel may be asked.
pub fn is_allowed() -> bool {
    !FORBIDDEN.load(Ordering::Relaxed) // Relaxed: as above
}

/// A raw system call; or the error that it is not permitted.
macro_rules! asked {
    ($($argument:tt)*) => {
        if $crate::stats::asked::is_allowed() {
            ::syscalls::raw_syscall!($($argument)*)
        } else {
            (-libc::EPERM) as usize
        }
    };
}
pub(super) use asked;
