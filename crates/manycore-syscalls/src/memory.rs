//! The program's memory, where it may have passed an invalid address: the kernel then returns
//! `EFAULT`, so the kernel has to read the address first.

use core::ffi::c_char;

use syscalls::{Errno, Sysno, raw_syscall};

/// The value at an address; `None` if the address cannot be read, or is not aligned.
///
/// # Safety
///
/// Any bytes are a valid `T`, and a `T` has 8 bytes at most. No other thread frees the memory
/// meanwhile.
pub unsafe fn read<T: Copy>(pointer: *const T) -> Option<T> {
    const { assert!(size_of::<T>() <= WORD) };
    // SAFETY: it is aligned, and the word around it can be read. By the contract of this function
    // any bytes are a valid value, and the memory stays.
    (pointer.is_aligned() && is_readable(pointer.addr())).then(|| unsafe { pointer.read() })
}

const WORD: usize = 8;

/// A path without its final NUL, as far as it can be read and is not longer than paths may be.
///
/// # Safety
///
/// No other thread changes the path or frees its memory as long as the text is used.
pub unsafe fn text<'a>(path: *const c_char) -> &'a [u8] {
    const PAGE: usize = 4096;
    let begin = path.cast::<u8>();
    let is_there = |length: usize| {
        let at = begin.wrapping_add(length);
        (length > 0 && !at.addr().is_multiple_of(PAGE)) || is_readable(at.addr())
    };
    let mut length = 0;
    // SAFETY: the byte is in a page that `is_there` has found readable, and the bytes before it
    // were not the string's end.
    while length < PAGE && is_there(length) && unsafe { *begin.add(length) } != 0 {
        length += 1;
    }
    if length == 0 {
        return &[];
    }
    // SAFETY: the loop has just read these bytes; that they stay as they are is the contract of
    // this function.
    unsafe { core::slice::from_raw_parts(begin, length) }
}

/// Whether the aligned eight bytes around an address can be read. `rt_sigprocmask` copies a set of
/// signals before it checks its first argument, which is invalid here.
pub fn is_readable(address: usize) -> bool {
    const NOTHING: i32 = -1;
    let none = core::ptr::null_mut::<u64>();
    // SAFETY: the kernel reads the word, if it can, and then refuses the call: it changes nothing.
    let result =
        unsafe { raw_syscall!(Sysno::rt_sigprocmask, NOTHING, address & !(WORD - 1), none, WORD) };
    Errno::from_ret(result) == Err(Errno::EINVAL)
}
