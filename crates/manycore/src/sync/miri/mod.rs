//! The interpreter Miri: no instruction, system call or memory that it does not know.
//!
//! Miri runs the compiler's intermediate representation, and stops at undefined behaviour: an
//! access outside an allocation or after its end, by a pointer that has no right to it, a data
//! race, a value that its type forbids. It has no `asm!` and no raw system call, but the calls of
//! libc that the standard library makes, futexes among them. Its clock, like its CPUs, is its own.
//!
//! Two CPUs and two NUMA nodes, so that there are two of everything that each has; a thread stays
//! on its own.

/// Atomics, as `core` has them.
pub mod atomic {
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

#[path = "../fences.rs"]
pub mod barrier;
#[path = "../cell.rs"]
pub mod cell;
pub mod clock;
pub mod cpu;
pub mod futex;
#[path = "../global.rs"]
pub(super) mod global;
pub mod hint;
pub mod node;
#[path = "../linux/process.rs"]
pub mod process;
#[path = "../process_table.rs"]
pub(super) mod table;
pub mod thread;

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
    // SAFETY: the call writes one timespec, into `now`.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now
}
