//! Linux: raw system calls and the time-stamp counter.
//!
//! Everything here works inside a library that is preloaded into another program, before the
//! program's constructors and after its destructors. There is no allocation, and no libc call in a
//! lock function. `errno` does not change. Thread-local state is by initial-exec TLS, which needs
//! no call and no set-up.

pub mod barrier;
pub mod clock;
pub mod cpu;
pub mod futex;
pub mod hint;
mod local;
pub mod node;
mod nodes;
pub mod process;
#[cfg(target_arch = "aarch64")]
mod rseq;
pub mod thread;

/// Atomics, as `core` has them.
pub mod atomic {
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

#[path = "../cell.rs"]
pub mod cell;

#[path = "../global.rs"]
pub(super) mod global;

#[path = "../process_table.rs"]
pub(super) mod table;

pub(super) fn has_passed(deadline: &super::Deadline) -> bool {
    let now = read(if deadline.wall { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC });
    (now.tv_sec, now.tv_nsec) >= (deadline.seconds, i64::from(deadline.nanoseconds))
}

/// What the monotonic clock says.
pub(super) fn monotonic() -> core::time::Duration {
    let now = read(libc::CLOCK_MONOTONIC);
    core::time::Duration::new(now.tv_sec.cast_unsigned(), now.tv_nsec as u32)
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, into `now`.
    unsafe {
        syscalls::raw_syscall!(syscalls::Sysno::clock_gettime, clock, &raw mut now);
    }
    now
}
