//! The processor's time stamp counter, in which the preloaded library takes times, against the
//! system's clock.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Shorter spans would give the rate to less than one part in ten thousand.
const SHORTEST: Duration = Duration::from_millis(2);

/// A moment, read on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    instant: Instant,
    ticks: u64,
}

impl Clock {
    /// Now.
    pub fn start() -> Self {
        Self { instant: Instant::now(), ticks: ticks() }
    }

    /// Time since then.
    pub fn elapsed(&self) -> Duration {
        self.instant.elapsed()
    }

    /// The counter's rate between then and now. Waits until enough time has passed.
    pub fn rate(&self) -> Rate {
        sleep(SHORTEST.saturating_sub(self.instant.elapsed()));
        let now = Self::start();
        let ns = (now.instant - self.instant).as_nanos() as f64;
        Rate { ticks_per_ns: now.ticks.wrapping_sub(self.ticks) as f64 / ns, origin: self.ticks }
    }
}

/// How to turn ticks into time.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Ticks in a nanosecond.
    pub ticks_per_ns: f64,
    /// The counter at the start.
    pub origin: u64,
}

impl Rate {
    /// A duration in nanoseconds.
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_ns
    }

    /// A duration in ticks.
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 * self.ticks_per_ns).round() as u64
    }

    /// Seconds from the start to a moment.
    pub fn seconds_since_start(&self, ticks: u64) -> f64 {
        self.ns(ticks.saturating_sub(self.origin)) / 1e9
    }
}

/// The counter now.
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 processor has the instruction, and it touches no memory.
    unsafe {
        std::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads the virtual counter, which Linux opens to user space.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_a_processor() {
        let rate = Clock::start().rate();
        assert!((0.1..10.0).contains(&rate.ticks_per_ns), "{rate:?}");
        let second = rate.origin + (rate.ticks_per_ns * 1e9) as u64;
        assert!((rate.seconds_since_start(second) - 1.0).abs() < 1e-6);
    }
}
