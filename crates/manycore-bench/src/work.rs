//! Work of a given length that is really executed.
//!
//! A length is CPU time: with more threads than CPUs, an interrupted critical section takes longer
//! on the wall clock, as real ones do. So work is a number of iterations of a loop, and does not
//! end by a clock. The loop is calibrated once a run: every lock gets the same iterations.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How fast this machine works.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    ns_per_iteration: f64,
}

impl Pace {
    /// Times the work loop, for about 30 ms. The fastest of many short runs counts, because other
    /// activity of the machine can only slow them down.
    pub fn measure() -> Self {
        const ITERATIONS: u32 = 20_000;
        let deadline = Instant::now() + Duration::from_millis(30);
        let mut fastest = Duration::MAX;
        let mut value = 1;
        while Instant::now() < deadline {
            let start = Instant::now();
            value = std::hint::black_box(work(value, ITERATIONS));
            fastest = fastest.min(start.elapsed());
        }
        Self { ns_per_iteration: fastest.as_nanos() as f64 / f64::from(ITERATIONS) }
    }

    /// The speed of a machine on which an iteration takes this long.
    pub fn of(ns_per_iteration: f64) -> Self {
        Self { ns_per_iteration }
    }

    /// How many iterations take this long.
    pub fn iterations(self, ns: f64) -> u32 {
        (ns / self.ns_per_iteration).round() as u32
    }
}

/// Works for this many iterations; the result depends on each of them.
#[inline]
pub fn work(mut value: u64, iterations: u32) -> u64 {
    for _ in 0..iterations {
        // Each iteration needs the result of the one before it: a multiplication and an addition,
        // about a nanosecond.
        value =
            value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    }
    value
}

/// How lengths vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// All the same.
    Fixed,
    /// Exponentially distributed, as times between independent events are.
    Exponential,
}

/// The length of a section, or of the time between two sections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Length {
    /// The mean.
    pub mean_ns: f64,
    /// How single lengths spread about it.
    pub spread: Spread,
}

impl Length {
    /// Always the same.
    pub fn fixed(ns: f64) -> Self {
        Self { mean_ns: ns, spread: Spread::Fixed }
    }

    /// Exponentially distributed.
    pub fn exponential(mean_ns: f64) -> Self {
        Self { mean_ns, spread: Spread::Exponential }
    }

    /// Draws `count` lengths in nanoseconds, in random order. The distribution is cut into equally
    /// probable parts, and the middle of each is taken, so even few lengths have the right mean.
    pub(crate) fn draw(self, count: usize, random: &mut fastrand::Rng) -> Vec<f64> {
        let quantile = |index: usize| (index as f64 + 0.5) / count as f64;
        let mut lengths: Vec<f64> = match self.spread {
            Spread::Fixed => vec![self.mean_ns; count],
            Spread::Exponential => {
                (0..count).map(|index| -self.mean_ns * (1.0 - quantile(index)).ln()).collect()
            }
        };
        random.shuffle(&mut lengths);
        lengths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_lengths_have_the_mean_and_the_spread() {
        let mut random = fastrand::Rng::with_seed(1);
        let lengths = Length::exponential(100.0).draw(256, &mut random);
        let mean = lengths.iter().sum::<f64>() / 256.0;
        assert!((mean - 100.0).abs() < 1.0, "{mean}");
        let short = lengths.iter().filter(|length| **length < 69.3).count();
        assert!((126..=130).contains(&short), "{short} of 256 below the median");
        assert_eq!(Length::fixed(5.0).draw(3, &mut random), [5.0; 3]);
    }

    #[test]
    fn work_takes_about_as_long_as_asked() {
        let pace = Pace::measure();
        let iterations = pace.iterations(1e6);
        // The fastest of many: this test must hold on a machine that does other things as well.
        let fastest = (0..50).map(|seed| {
            let start = Instant::now();
            std::hint::black_box(work(seed, iterations));
            start.elapsed()
        });
        let fastest = fastest.min().unwrap();
        let expected = Duration::from_micros(500)..Duration::from_micros(3_000);
        assert!(
            expected.contains(&fastest),
            "{iterations} iterations took {fastest:?} instead of a millisecond"
        );
    }
}
