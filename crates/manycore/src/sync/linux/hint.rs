//! Ways of passing time.
#![expect(
    clippy::disallowed_methods,
    reason = "the facade is what algorithms use in place of these"
)]

use syscalls::{Sysno, raw_syscall};

use super::clock;
pub use crate::sync::foresight::{prefetch, touch, unforeseen_branch};

/// One turn of a polling loop.
#[inline]
pub fn spin_loop() {
    core::hint::spin_loop();
}

/// One iteration of a loop that ends after a fixed number of iterations, rather than when something
/// changes.
#[inline]
pub fn pause() {
    core::hint::spin_loop();
}

/// Spends about `ticks` of [`clock::now`] without giving up the CPU.
#[inline]
pub fn delay(ticks: u64) {
    let start = clock::now();
    while clock::now().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}

/// Announces that all of this memory is going to be used, at random addresses, so that large pages
/// save more than they waste. To be called before the memory is used. It has an effect where the
/// system's administrator allows large pages on demand (`transparent_hugepage/enabled`), for at
/// least 2 MiB.
#[cold]
pub fn huge_pages(address: *mut u8, bytes: usize) {
    // The largest of any kernel: those of AArch64 have pages of 4, 16 or 64 KiB.
    const PAGE: usize = 64 << 10;
    // Memory of at least this size most probably comes fresh from the operating system, and
    // contains at least one large page.
    const LEAST: usize = 2 << 20;
    if bytes < LEAST {
        return;
    }
    let begin = address.wrapping_byte_add(address.addr().wrapping_neg() % PAGE);
    let length = (address.addr() + bytes) / PAGE * PAGE - begin.addr();
    // SAFETY: changes the memory's pages, and not its contents. An old kernel has no such advice,
    // and refuses.
    unsafe {
        raw_syscall!(Sysno::madvise, begin, length, libc::MADV_HUGEPAGE);
    }
}

/// Lets another runnable thread have the CPU; returns at once if there is none (`sched_yield`).
#[cold]
pub fn yield_now() {
    // SAFETY: `sched_yield` takes no arguments, and the call changes nothing in memory.
    unsafe {
        raw_syscall!(Sysno::sched_yield);
    }
}

/// Sleeps for a time of 0, which gives up the CPU for as long as the kernel's timer slack (50 us
/// unless changed).
#[cold]
pub fn sleep_zero() {
    sleep(0);
}

/// Sleeps for at least `nanoseconds` (below 10^9), or until a signal. It uses the same system call
/// as waiting locks, since a program's sandbox may allow no other.
#[cold]
pub fn sleep(nanoseconds: u32) {
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: i64::from(nanoseconds) };
    let nobody_wakes = 0_u32;
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word, which holds the expected value, and the time, which counts
    // from now.
    unsafe {
        raw_syscall!(Sysno::futex, &raw const nobody_wakes, operation, 0, &raw const timeout);
    }
}
