//! Writes to files where their size is limited: a thread that goes past the limit gets SIGXFSZ,
//! which has to be the program's.

use manycore_stats::syscalls::Function;
use syscalls::{Sysno, raw_syscall};

/// Whether the kernel may send SIGXFSZ to the thread that executes such a call on a file. The limit
/// belongs to the process, and other processes may change it.
pub fn may_signal(function: Function) -> bool {
    use Function::{Pwrite, Pwritev, Sendfile, Splice, Write, Writev};
    matches!(function, Write | Writev | Pwrite | Pwritev | Sendfile | Splice) && is_limited()
}

fn is_limited() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let none = core::ptr::null::<libc::rlimit>();
    // SAFETY: the structure is as large as the kernel writes, and is the only memory that it writes
    // to.
    let failed =
        unsafe { raw_syscall!(Sysno::prlimit64, 0, libc::RLIMIT_FSIZE, none, &raw mut limit) } != 0;
    failed || limit.rlim_cur != libc::RLIM_INFINITY
}
