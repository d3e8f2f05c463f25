//! No operating system: what a kernel has to supply, as link-time symbols.
//!
//! A kernel defines the functions of [`symbols`] with the C calling convention. A single-CPU or interrupt context
//! that cannot sleep may implement `manycore_futex_wait` as a return: waiting is then polling.

/// The symbols that a kernel defines.
mod symbols {
    use super::atomic::AtomicU32;
    use crate::sync::Deadline;

    unsafe extern "C" {
        /// Sleeps while `*word == expected`, atomically with regard to `manycore_futex_wake`. `deadline` may be null.
        /// Returns whether the deadline passed; may return early without cause.
        pub fn manycore_futex_wait(
            word: *const AtomicU32,
            expected: u32,
            deadline: *const Deadline,
        ) -> bool;
        /// Wakes at most `count` threads that sleep on `word`, whose memory may be gone.
        pub fn manycore_futex_wake(word: *const AtomicU32, count: u32);
        /// Whether the moment has come.
        pub fn manycore_deadline_passed(deadline: *const Deadline) -> bool;
        /// Lets another thread have the CPU.
        pub fn manycore_yield();
        /// A constant-rate counter.
        pub fn manycore_ticks() -> u64;
        /// How many CPUs there are, at least 1.
        pub fn manycore_cpu_count() -> u32;
    }
}

/// Atomics, as `core` has them.
pub mod atomic {
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

#[path = "cell.rs"]
pub mod cell;

/// Waiting on a word.
pub mod futex {
    use super::{atomic::AtomicU32, symbols};
    use crate::sync::{Deadline, Woken};

    /// Sleeps while `word` holds `expected`, until a [`wake`] or the deadline, or without cause.
    pub fn wait(word: &AtomicU32, expected: u32, deadline: Option<Deadline>) -> Woken {
        let until = deadline.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the word and the deadline outlive the call.
        let passed = unsafe { symbols::manycore_futex_wait(word, expected, until) };
        if passed { Woken::TimedOut } else { Woken::Perhaps }
    }

    /// Wakes at most `count` threads that sleep on `word`, whose memory may be gone.
    #[expect(clippy::not_unsafe_ptr_arg_deref, reason = "the address is a key, not followed")]
    pub fn wake(word: *const AtomicU32, count: u32) {
        // SAFETY: the kernel uses the address as a key only.
        unsafe { symbols::manycore_futex_wake(word, count) }
    }
}

/// Time.
pub mod clock {
    /// Now, in ticks of the kernel's counter.
    pub fn now() -> u64 {
        // SAFETY: reads a counter.
        unsafe { super::symbols::manycore_ticks() }
    }
}

/// Ways of passing time.
#[expect(
    clippy::disallowed_methods,
    reason = "the facade is what algorithms use in place of these"
)]
pub mod hint {
    use super::{clock, symbols};

    /// One turn of a polling loop.
    pub fn spin_loop() {
        core::hint::spin_loop();
    }

    /// Passes about `ticks` of [`clock::now`] without giving up the CPU.
    pub fn delay(ticks: u64) {
        let start = clock::now();
        while clock::now().wrapping_sub(start) < ticks {
            core::hint::spin_loop();
        }
    }

    /// Lets another runnable thread have the CPU.
    pub fn yield_now() {
        // SAFETY: takes no arguments and touches no memory of ours.
        unsafe { symbols::manycore_yield() }
    }

    /// A kernel has no sleep of no time: lets another thread have the CPU.
    pub fn sleep_zero() {
        yield_now();
    }

    /// Sleeping while polling for a deadline is a matter of taste in a kernel: lets another thread have the CPU.
    pub fn sleep(_nanoseconds: u32) {
        yield_now();
    }
}

/// CPUs.
pub mod cpu {
    /// How many CPUs there are.
    pub fn count() -> u32 {
        // SAFETY: reads a number.
        unsafe { super::symbols::manycore_cpu_count() }.max(1)
    }
}

/// Processes.
pub mod process {
    /// A kernel does not fork itself.
    pub fn generation() -> u32 {
        0
    }
}

pub(super) fn has_passed(deadline: &super::Deadline) -> bool {
    // SAFETY: the deadline outlives the call.
    unsafe { symbols::manycore_deadline_passed(deadline) }
}
