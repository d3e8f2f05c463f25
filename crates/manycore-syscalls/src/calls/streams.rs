//! stdio: it reads, writes and closes descriptors past every interposed function.
//!
//! A descriptor that a stream has been made of is left in place, and is forgotten when the stream
//! closes it.

use core::ffi::{c_char, c_int};

use libc::FILE;

use crate::{descriptors, real};

unsafe extern "C" {
    fn fileno_unlocked(stream: *mut FILE) -> c_int;
}

/// The stream's descriptor, -1 if it has none.
///
/// # Safety
///
/// The stream is null, or one of libc's that no thread closes meanwhile.
unsafe fn descriptor(stream: *mut FILE) -> c_int {
    if stream.is_null() {
        return -1;
    }
    // SAFETY: the stream is not null, and so one of libc's (contract of this function); the number
    // is the calling thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let fd = fileno_unlocked(stream);
        *errno = before;
        fd
    }
}

/// Notes the descriptor of a stream that is new or has got another file.
///
/// # Safety
///
/// As for [`descriptor`].
unsafe fn made(stream: *mut FILE) -> *mut FILE {
    // SAFETY: the stream is null or one of libc's (contract of this function).
    descriptors::stream(unsafe { descriptor(stream) });
    stream
}

/// Closes a stream, or gives it another file.
///
/// # Safety
///
/// As for [`descriptor`], before `close` runs.
unsafe fn closing<R>(stream: *mut FILE, close: impl FnOnce() -> R) -> R {
    // SAFETY: the stream is null or one of libc's (contract of this function).
    descriptors::closing(unsafe { descriptor(stream) }, close)
}

/// `fdopen`.
///
/// # Safety
///
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { made(real::fdopen(fd, mode)) }
}

/// `fclose`.
///
/// # Safety
///
/// See [`fdopen`].
pub unsafe extern "C-unwind" fn fclose(stream: *mut FILE) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { closing(stream, || real::fclose(stream)) }
}

/// `freopen`.
///
/// # Safety
///
/// See [`fdopen`].
pub unsafe extern "C-unwind" fn freopen(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { made(closing(stream, || real::freopen(path, mode, stream))) }
}

/// `freopen64`.
///
/// # Safety
///
/// See [`fdopen`].
pub unsafe extern "C-unwind" fn freopen64(
    path: *const c_char,
    mode: *const c_char,
    stream: *mut FILE,
) -> *mut FILE {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { made(closing(stream, || real::freopen64(path, mode, stream))) }
}

/// `popen`.
///
/// # Safety
///
/// See [`fdopen`].
pub unsafe extern "C-unwind" fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { made(real::popen(command, mode)) }
}

/// `pclose`.
///
/// # Safety
///
/// See [`fdopen`].
pub unsafe extern "C-unwind" fn pclose(stream: *mut FILE) -> c_int {
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function),
    // which makes or takes one of libc's streams.
    unsafe { closing(stream, || real::pclose(stream)) }
}
