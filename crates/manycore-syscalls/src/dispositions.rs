//! The kernel's reaction to each signal: whether it restarts a call after the handlers that there
//! are.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::sighandler_t;
use syscalls::{Sysno, raw_syscall};

use crate::thread;

/// A bit for each signal that has a handler without `SA_RESTART`, or had one with `SA_RESETHAND`.
static ENDING: AtomicU64 = AtomicU64::new(0);

fn bit(signal: c_int) -> u64 {
    1_u64.checked_shl((signal - 1) as u32).unwrap_or(0)
}

/// Whether the kernel restarts a call after every handler that can interrupt the calling thread. If
/// a thread has handlers of both kinds, every interruption is reported as `EINTR`, because the
/// kernel does not tell which handler ran.
pub fn all_restart() -> bool {
    let mut blocked = 0_u64;
    let none = core::ptr::null::<u64>();
    // SAFETY: the place has the size of a set of signals, which is 8 bytes.
    unsafe { raw_syscall!(Sysno::rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut blocked, 8) };
    // Relaxed: a handler that another thread installs at this moment may or may not be counted.
    ENDING.load(Ordering::Relaxed) & !blocked == 0
}

/// The signal with the highest number.
pub const LAST: c_int = 64;

/// What the kernel knows of a signal.
#[repr(C)]
pub struct Disposition {
    handler: sighandler_t,
    flags: u64,
    /// Where a handler returns to.
    pub restorer: usize,
    blocked: u64,
}

impl Disposition {
    /// The disposition of this signal; `None` if there is no such signal.
    pub fn of(signal: c_int) -> Option<Self> {
        let mut now = Self { handler: libc::SIG_DFL, flags: 0, restorer: 0, blocked: 0 };
        let none = core::ptr::null::<Self>();
        // SAFETY: the structure has the kernel's layout, and a set of signals has 8 bytes.
        let failed =
            unsafe { raw_syscall!(Sysno::rt_sigaction, signal, none, &raw mut now, 8) } != 0;
        (!failed).then_some(now)
    }

    fn is_handled(&self) -> bool {
        ![libc::SIG_DFL, libc::SIG_IGN].contains(&self.handler)
    }

    /// Whether the signal has a handler that does not block it, or had one with `SA_RESETHAND`.
    pub fn leaves_open(&self) -> bool {
        let has = |flag: c_int| self.flags & u64::from(flag.cast_unsigned()) != 0;
        has(libc::SA_NODEFER) && (self.is_handled() || has(libc::SA_RESETHAND))
    }
}

/// Lets libc change a signal's handler, in any way, and notes the new kind.
pub fn change<T>(signal: c_int, by_libc: impl FnOnce() -> T) -> T {
    // A child of vfork has handlers of its own, and the notes here are its parent's.
    if thread::shares_memory() {
        return by_libc();
    }
    // Relaxed, all: as in `all_restart`. Until it is known, a call that is interrupted ends.
    let before = ENDING.fetch_or(bit(signal), Ordering::Relaxed);
    let result = by_libc();
    let ends = match Disposition::of(signal) {
        Some(now) => now.is_handled() && now.flags & libc::SA_RESTART as u64 == 0,
        None => before & bit(signal) != 0,
    };
    if !ends {
        ENDING.fetch_and(!bit(signal), Ordering::Relaxed);
    }
    result
}
