//! Time in nanoseconds, for threads that wait for a limited time: [`clock`]'s ticks have another
//! length on each machine.

use super::{clock, hint};

/// Now, in nanoseconds since some moment. As fine as the counter's ticks are: 40 ns at 25 MHz.
#[inline]
pub fn now() -> u64 {
    clock::nanoseconds(clock::now())
}

/// [`clock::ordered`], in nanoseconds.
#[inline]
pub fn ordered() -> u64 {
    clock::nanoseconds(clock::ordered())
}

/// Whether `nanoseconds` have passed since [`now`] was `start`: for a loop that polls until
/// then at most.
#[inline]
pub fn has_passed(start: u64, nanoseconds: u64) -> bool {
    // The simulator parks a polling core until then, and counts in ticks.
    #[cfg(feature = "sim")]
    return clock::has_passed(clock::ticks(start), clock::ticks(nanoseconds));
    #[cfg(not(feature = "sim"))]
    return now().wrapping_sub(start) > nanoseconds;
}

/// Passes about `nanoseconds` without giving up the CPU.
#[inline]
pub fn delay(nanoseconds: u64) {
    #[cfg(feature = "sim")]
    hint::delay(clock::ticks(nanoseconds));
    #[cfg(loom)]
    hint::delay(nanoseconds);
    #[cfg(not(any(loom, feature = "sim")))]
    {
        let start = now();
        while !has_passed(start, nanoseconds) {
            hint::spin_loop();
        }
    }
}
