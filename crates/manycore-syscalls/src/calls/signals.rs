//! The signal by which our threads are interrupted: for the program it is as if nobody could handle it.
//!
//! libc has two of that kind itself. A program that sets all signals to something finds that done; one that wants to handle
//! this one is told once, on standard error, that it cannot.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use libc::{sigaction as Action, sighandler_t};
use manycore_interpose::message::say;
use manycore_steer::INTERRUPT;

use crate::real;

/// Says once that a handler will not be called.
fn refuse(handler: sighandler_t) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: at worst two threads say it.
    let is_handled = handler != libc::SIG_DFL && handler != libc::SIG_IGN;
    if is_handled && !SAID.swap(true, Ordering::Relaxed) {
        say(&[b"signal 61 is in use for interrupting moved system calls: the program's handler for it is not installed"]);
    }
}

/// `sigaction`.
///
/// # Safety
///
/// As the manual page says; so for all functions here.
pub unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
) -> c_int {
    if signal != INTERRUPT {
        // SAFETY: the caller's promise.
        return unsafe { real::sigaction(signal, new, old) };
    }
    // SAFETY: null, or the caller's.
    unsafe {
        if let Some(new) = new.as_ref() {
            refuse(new.sa_sigaction);
        }
        if !old.is_null() {
            old.write(core::mem::zeroed());
        }
    }
    0
}

macro_rules! by_one_handler {
    ($($name:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// See [`sigaction`].
            pub unsafe extern "C-unwind" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
                if signal == INTERRUPT {
                    refuse(handler);
                    return libc::SIG_DFL;
                }
                // SAFETY: the caller's promise.
                unsafe { real::$name(signal, handler) }
            }
        )*
    };
}

by_one_handler! {
    signal;
    sysv_signal;
    sigset;
}
