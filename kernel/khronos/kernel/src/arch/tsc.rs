//! The CPU's time-stamp counter, and time from it.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// Ticks in a second; measured at boot.
static HERTZ: AtomicU64 = AtomicU64::new(0);
/// The counter at boot.
static START: AtomicU64 = AtomicU64::new(0);

/// Reads the counter, after all loads that come earlier in the program.
pub fn read() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: reads the time-stamp counter, which user and kernel mode may, and accesses no memory.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Time begins.
pub fn set(ticks_in_ten_milliseconds: u64) {
    // Relaxed, both: one CPU runs.
    HERTZ.store(ticks_in_ten_milliseconds * 100, Ordering::Relaxed);
    START.store(read(), Ordering::Relaxed);
}

/// Ticks in nanoseconds.
pub fn nanoseconds(ticks: u64) -> u64 {
    let hertz = HERTZ.load(Ordering::Relaxed).max(1); // Relaxed: constant since boot
    (u128::from(ticks) * 1_000_000_000 / u128::from(hertz)) as u64
}

/// Nanoseconds since boot.
pub fn now() -> u64 {
    nanoseconds(read().wrapping_sub(START.load(Ordering::Relaxed))) // Relaxed: constant since boot
}
