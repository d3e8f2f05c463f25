//! Ways of passing time.
#![expect(
    clippy::disallowed_methods,
    reason = "the facade is what algorithms use in place of these"
)]

extern crate std;

use core::time::Duration;

use super::clock;
pub use crate::sync::foresight::{prefetch, touch, unforeseen_branch};

/// One iteration of a polling loop: the interpreter lets another thread run.
pub fn spin_loop() {
    core::hint::spin_loop();
}

/// One iteration of a loop that ends by itself, after this many iterations, rather than when
/// something changes.
pub fn pause() {
    core::hint::spin_loop();
}

/// Passes about `ticks` of [`clock::now`] without giving up the CPU.
pub fn delay(ticks: u64) {
    let start = clock::now();
    while clock::now().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}

/// Memory that is going to be used: the interpreter has no pages.
pub fn huge_pages(_address: *mut u8, _bytes: usize) {}

/// Lets another runnable thread have the CPU.
pub fn yield_now() {
    std::thread::yield_now();
}

/// Sleeps for no time.
pub fn sleep_zero() {
    yield_now();
}

/// Sleeps for at least `nanoseconds` (below 10^9).
pub fn sleep(nanoseconds: u32) {
    std::thread::sleep(Duration::from_nanos(nanoseconds.into()));
}
