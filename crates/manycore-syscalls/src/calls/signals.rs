//! Handlers: they are noted, and one signal cannot have any.
//!
//! That signal interrupts our threads. libc has two such signals itself. If a program sets all
//! signals to some disposition, the call succeeds for this one; a program that installs a handler
//! for it is told once, on standard error, that it cannot.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::offload::INTERRUPT;
use libc::{sigaction as Action, sighandler_t};
use manycore_interpose::message::say;

use crate::dispositions::change;
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
/// As the manual page says. This holds for all functions here.
pub unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const Action,
    old: *mut Action,
) -> c_int {
    if signal != INTERRUPT {
        // SAFETY: signal and pointers are right for libc's `sigaction` (contract of this function).
        let by_libc = || unsafe { real::sigaction(signal, new, old) };
        return if new.is_null() { by_libc() } else { change(signal, by_libc) };
    }
    // SAFETY: each pointer is null or right for `sigaction` (contract of this function). A
    // structure of zeros is the default disposition.
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
                // SAFETY: the arguments are valid for libc's function of this name (contract of
                // this function).
                change(signal, || unsafe { real::$name(signal, handler) })
            }
        )*
    };
}

by_one_handler! {
    signal;
    sysv_signal;
    sigset;
}

/// `siginterrupt`.
///
/// # Safety
///
/// See [`sigaction`].
pub unsafe extern "C-unwind" fn siginterrupt(signal: c_int, interrupts: c_int) -> c_int {
    if signal == INTERRUPT {
        return 0;
    }
    // SAFETY: the arguments are valid for libc's function of this name (contract of this function).
    change(signal, || unsafe { real::siginterrupt(signal, interrupts) })
}
