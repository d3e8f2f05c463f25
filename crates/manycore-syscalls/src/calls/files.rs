//! Files: opening one determines the descriptor's kind; other calls are moved only if the user asks
//! for it.

use core::ffi::{c_char, c_int, c_void};

use crate::offload::{Call, Route};
use libc::{iovec, mode_t, off_t};
use manycore_stats::syscalls::{Function, Outcome};

use super::{moved_as_they_are, sockets, stat, ties};
use crate::in_flight::Shape;
use crate::moved;
use crate::table::OFFLOAD;
use crate::{counters, descriptors, memory, real, table};

moved_as_they_are! {
    pread(fd, buffer: *mut c_void, length: usize, offset: off_t) -> isize = libc::SYS_pread64, Shape::waits(Function::Pread);
    pwrite(fd, buffer: *const c_void, length: usize, offset: off_t) -> isize = libc::SYS_pwrite64, Shape::waits(Function::Pwrite);
    preadv(fd, parts: *const iovec, count: c_int, offset: off_t) -> isize = libc::SYS_preadv, Shape::waits(Function::Preadv);
    pwritev(fd, parts: *const iovec, count: c_int, offset: off_t) -> isize = libc::SYS_pwritev, Shape::waits(Function::Pwritev);
    fsync(fd) -> c_int = libc::SYS_fsync, Shape::waits(Function::Fsync);
    fdatasync(fd) -> c_int = libc::SYS_fdatasync, Shape::waits(Function::Fdatasync);
}

/// Notes a new descriptor that was opened with these flags.
///
/// # Safety
///
/// The path is the one that was opened.
unsafe fn opened(fd: c_int, path: *const c_char, flags: c_int) -> c_int {
    if fd >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY {
        // SAFETY: the path was opened, and is not changed meanwhile (contract of this function).
        unsafe { ties::opened_to_write(path) };
    }
    if table::moves_files() {
        // At its first use, the kernel is asked whether it is a file.
        descriptors::forget(fd);
    } else {
        descriptors::plain(fd);
    }
    fd
}

/// The arguments for opening a file: directory, path, flags and mode.
type Opening = (c_int, *const c_char, c_int, mode_t);

/// Opens a file in another thread, if calls on files are moved; `None` if it has to be opened in
/// place. The route is for this call alone: at the descriptor's first use, the kernel is asked for
/// its kind.
///
/// # Safety
///
/// As the manual page says of `openat`.
unsafe fn open_elsewhere((directory, path, flags, mode): Opening) -> Option<c_int> {
    if !table::moves_files() {
        return None;
    }
    // SAFETY: the arguments are valid for `openat`, so that no other thread changes the path
    // (contract of this function).
    if !unsafe { is_same_for_all(path) } {
        counters::count(Function::Open, Outcome::Unsure);
        return None;
    }
    let route = descriptors::new_route(Function::Open);
    let args = [directory as usize, path.addr(), flags as usize, mode as usize, 0, 0];
    let call = Call { number: libc::SYS_openat as usize, args };
    // SAFETY: the arguments are valid for `openat` (contract of this function), and so for the
    // system call.
    let answer = unsafe { sockets::make(route, Shape::waits(Function::Open).makes(), call) };
    if route != Route::NONE {
        OFFLOAD.close(route);
    }
    answer.map(|answer| moved::result(answer) as c_int)
}

/// Whether a path leads to the same file in every thread: some paths of `/proc` do not. For an
/// unreadable path the kernel returns the error.
///
/// # Safety
///
/// No other thread changes the path.
unsafe fn is_same_for_all(path: *const c_char) -> bool {
    // SAFETY: no other thread changes the path (contract of this function).
    let text = unsafe { memory::text(path) };
    !text.starts_with(b"/proc") && !text.windows(11).any(|part| part == b"thread-self")
}

macro_rules! opening {
    ($($name:ident = $real:ident($($arg:ident: $ty:ty),*) as ($directory:expr, $path:ident, $flags:expr, $mode:expr);)*) => {
        $(
            #[doc = concat!("`", stringify!($real), "`; a mode that is not given is whatever is in its register.")]
            ///
            /// # Safety
            ///
            /// As the manual page says.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
                // SAFETY: the arguments are valid for libc's function of this name (contract of
                // this function), and the path is the one that is opened.
                unsafe {
                    stat::note_own_threads($path);
                    let elsewhere = open_elsewhere(($directory, $path, $flags, $mode));
                    let fd = elsewhere.unwrap_or_else(|| real::$real($($arg),*));
                    opened(fd, $path, $flags)
                }
            }
        )*
    };
}

/// What `creat` opens with.
const CREATES: c_int = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;

opening! {
    open = open(path: *const c_char, flags: c_int, mode: mode_t) as (libc::AT_FDCWD, path, flags, mode);
    open64 = open64(path: *const c_char, flags: c_int, mode: mode_t) as (libc::AT_FDCWD, path, flags, mode);
    openat = openat(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) as (directory, path, flags, mode);
    openat64 = openat64(directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) as (directory, path, flags, mode);
    creat = creat(path: *const c_char, mode: mode_t) as (libc::AT_FDCWD, path, CREATES, mode);
    creat64 = creat64(path: *const c_char, mode: mode_t) as (libc::AT_FDCWD, path, CREATES, mode);
}

/// The same for programs that were compiled with checks: libc ends such a program if a mode is
/// missing.
macro_rules! opening_checked {
    ($($name:ident = $real:ident or $plain:ident($($arg:ident: $ty:ty),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($real), "`.")]
            ///
            /// # Safety
            ///
            /// As the manual page says for the function without checks.
            pub unsafe extern "C-unwind" fn $name($($arg: $ty,)* flags: c_int) -> c_int {
                const UNNAMED: c_int = libc::O_TMPFILE;
                // SAFETY: the arguments are valid for the function without checks (contract of this
                // function), unless a mode is missing: then libc's function ends the program.
                unsafe {
                    if flags & libc::O_CREAT != 0 || flags & UNNAMED == UNNAMED {
                        return real::$real($($arg,)* flags);
                    }
                    $plain($($arg,)* flags, 0)
                }
            }
        )*
    };
}

opening_checked! {
    open_2 = __open_2 or open(path: *const c_char);
    open64_2 = __open64_2 or open64(path: *const c_char);
    openat_2 = __openat_2 or openat(directory: c_int, path: *const c_char);
    openat64_2 = __openat64_2 or openat64(directory: c_int, path: *const c_char);
}

/// `__pread_chk`: the form of `pread` in a program that was compiled with checks.
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
    // SAFETY: the arguments are valid for `pread` (contract of this function), unless the buffer is
    // too small: then libc's function ends the program.
    unsafe {
        if length > size {
            return real::__pread_chk(fd, buffer, length, offset, size);
        }
        pread(fd, buffer, length, offset)
    }
}
