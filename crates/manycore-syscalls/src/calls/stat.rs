//! Programs that count their own threads by a directory: it has as many links as threads, plus two.
//! A program with one thread that looks there may rely on having no other, like one that forks
//! sandboxes, and gets none of our threads.
//!
//! # Limit
//!
//! Threads are counted in other ways, too (`/proc/self/status`), which are not seen.

use core::ffi::c_char;

use manycore_interpose::{noted, process};

use crate::{memory, real, threads};

/// `name = function that notes(arguments ahead of the path)`.
macro_rules! stat_calls {
    ($($name:ident = $note:ident($($ahead:ident),*);)*) => {
        noted! { $($name = $note;)* }

        $(
            /// # Safety
            ///
            /// As for [`note_own_threads`]; the jump to here brings libc's arguments.
            unsafe extern "C" fn $note($($ahead: usize,)* path: *const c_char) -> usize {
                // SAFETY: the program has libc's function read the path next (contract of this
                // function).
                unsafe { note_own_threads(path) };
                real::$name.address()
            }
        )*
    };
}

stat_calls! {
    stat = note_stat();
    stat64 = note_stat64();
    lstat = note_lstat();
    lstat64 = note_lstat64();
    fstatat = note_fstatat(_directory);
    fstatat64 = note_fstatat64(_directory);
    statx = note_statx(_directory);
    opendir = note_opendir();
    __xstat = note_xstat(_version);
    __xstat64 = note_xstat64(_version);
    __lxstat = note_lxstat(_version);
    __lxstat64 = note_lxstat64(_version);
    __fxstatat = note_fxstatat(_version, _directory);
    __fxstatat64 = note_fxstatat64(_version, _directory);
}

/// This path is about to be looked at.
///
/// # Safety
///
/// No other thread changes the path or frees its memory meanwhile.
pub unsafe fn note_own_threads(path: *const c_char) {
    // SAFETY: no other thread changes the path (contract of this function).
    if threads::are_ours_alone() && is_of_own_threads(unsafe { memory::text(path) }) {
        threads::leave_alone();
    }
}

/// Whether a path ends in `self/task`, or in the process' number and `task`.
fn is_of_own_threads(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/').filter(|part| !part.is_empty());
    parts.next() == Some(b"task")
        && parts.next().is_some_and(|process| process == b"self" || is_own_number(process))
}

fn is_own_number(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| text.parse() == Ok(process::id()))
}
