//! The threads that there are, without libc.

use syscalls::{Sysno, raw_syscall};

/// The number of this process' threads: the entries of its task directory, by its link count; 0 if
/// the kernel does not give it.
pub fn count() -> u32 {
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    let path = c"/proc/self/task".as_ptr();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the path is a string, and the structure is as large as the kernel writes.
    let failed = unsafe { raw_syscall!(Sysno::stat, path, &raw mut status) } != 0;
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the path is a string, and the structure is as large as the kernel writes.
    let failed =
        unsafe { raw_syscall!(Sysno::fstatat, libc::AT_FDCWD, path, &raw mut status, 0) } != 0;
    // Two of the links are the directory's own.
    if failed { 0 } else { (status.st_nlink as u32).saturating_sub(2) }
}
