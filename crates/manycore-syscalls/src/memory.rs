//! The program's memory, where it may have handed over an address at which there is none: the kernel says `EFAULT` then, and so it has to
//! be the kernel that reads it first.

use syscalls::{Errno, Sysno, raw_syscall};

/// What is at an address; none if nothing can be read there, or if it is not aligned.
///
/// # Safety
///
/// Any bytes are a value, and a `T` is of 8 bytes at most. No other thread takes the memory away meanwhile.
pub unsafe fn read<T: Copy>(pointer: *const T) -> Option<T> {
    const { assert!(size_of::<T>() <= WORD) };
    // SAFETY: readable, and aligned; the rest by the caller's word.
    (pointer.is_aligned() && is_readable(pointer.addr())).then(|| unsafe { pointer.read() })
}

const WORD: usize = 8;

/// Whether the aligned eight bytes around an address can be read. `rt_sigprocmask` copies a set of signals before it looks at what it is to
/// do with it, which here is nothing that there is.
pub fn is_readable(address: usize) -> bool {
    const NOTHING: i32 = -1;
    let none = core::ptr::null_mut::<u64>();
    // SAFETY: changes nothing.
    let result =
        unsafe { raw_syscall!(Sysno::rt_sigprocmask, NOTHING, address & !(WORD - 1), none, WORD) };
    Errno::from_ret(result) == Err(Errno::EINVAL)
}
