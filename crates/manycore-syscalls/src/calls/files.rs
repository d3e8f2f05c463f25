//! Files: opening one says what the descriptor is; the rest is moved only where the user asks for it.

use core::ffi::{c_char, c_int, c_void};

use libc::{iovec, mode_t, off_t};
use manycore_profile::layout::syscalls::Function;

use super::{moved_as_they_are, ties};
use crate::moved::Shape;
use crate::{descriptors, real};

moved_as_they_are! {
    pread(fd, buffer: *mut c_void, length: usize, offset: off_t) -> isize = SYS_pread64, Shape::waits(Function::Pread);
    pwrite(fd, buffer: *const c_void, length: usize, offset: off_t) -> isize = SYS_pwrite64, Shape::waits(Function::Pwrite);
    preadv(fd, parts: *const iovec, count: c_int, offset: off_t) -> isize = SYS_preadv, Shape::waits(Function::Preadv);
    pwritev(fd, parts: *const iovec, count: c_int, offset: off_t) -> isize = SYS_pwritev, Shape::waits(Function::Pwritev);
    fsync(fd) -> c_int = SYS_fsync, Shape::waits(Function::Fsync);
    fdatasync(fd) -> c_int = SYS_fdatasync, Shape::waits(Function::Fdatasync);
}

/// Notes a descriptor that has just been made by opening something with these flags.
///
/// # Safety
///
/// The path is the one that was opened.
unsafe fn opened(fd: c_int, path: *const c_char, flags: c_int) -> c_int {
    if fd >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY {
        // SAFETY: the caller's promise.
        unsafe { ties::opened_to_write(path) };
    }
    if descriptors::moves_files() {
        // Whether it is a file, the kernel is asked at its first use.
        descriptors::forget(fd);
    } else {
        descriptors::plain(fd);
    }
    fd
}

macro_rules! opening {
    ($($name:ident = $real:ident($($arg:ident: $ty:ty),*) with ($path:ident, $flags:expr);)*) => {
        $(
            #[doc = concat!("`", stringify!($real), "`; a mode that is not given is whatever is in its register.")]
            ///
            /// # Safety
            ///
            /// As the manual page says.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: the caller's promise.
                unsafe { opened(real::$real($($arg),*), $path, $flags) }
            }
        )*
    };
}

opening! {
    open = open(path: *const c_char, flags: c_int, mode: mode_t) with (path, flags);
    open64 = open64(path: *const c_char, flags: c_int, mode: mode_t) with (path, flags);
    openat = openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) with (path, flags);
    openat64 = openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) with (path, flags);
    creat = creat(path: *const c_char, mode: mode_t) with (path, libc::O_WRONLY);
    creat64 = creat64(path: *const c_char, mode: mode_t) with (path, libc::O_WRONLY);
    open_2 = __open_2(path: *const c_char, flags: c_int) with (path, flags);
    open64_2 = __open64_2(path: *const c_char, flags: c_int) with (path, flags);
    openat_2 = __openat_2(directory: c_int, path: *const c_char, flags: c_int) with (path, flags);
    openat64_2 = __openat64_2(directory: c_int, path: *const c_char, flags: c_int) with (path, flags);
}

/// `__pread_chk`: what `pread` is in a program that was compiled with checks.
///
/// # Safety
///
/// As the manual page says.
pub unsafe extern "C-unwind" fn pread_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: usize,
    offset: off_t,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise; libc ends the program if the buffer is too small.
    unsafe {
        if length > size {
            return real::__pread_chk(fd, buffer, length, offset, size);
        }
        pread(fd, buffer, length, offset)
    }
}
