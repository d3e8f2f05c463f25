//! The resources that a process uses over time, and a check that they do not grow.
//!
//! # When it is flat
//!
//! The first half of a run is warm-up: caches fill, and threads start. The usage in the last
//! quarter may exceed that in the third by no more than an [allowance](ALLOWANCES). Both are
//! medians, so that a sample from an unlucky moment does not decide. In a run of five minutes the
//! quarters' middles are 75 s apart: a leak of a byte for each of the 100,000 lock operations that
//! a server makes in a second shows as 7 MiB. A run of less than a [minute](WARM) never gets warm,
//! and is allowed [more](COLD_FACTOR).

use std::fmt::{self, Display};
use std::fs;
use std::time::Duration;

use super::{Failure, Result, ensure};

/// The resources of one sample, each with its name, its unit, and the tolerated growth, in units
/// and in percent.
///
/// The size of a server's heap varies by some percent; mappings and descriptors come and go with
/// threads and connections.
pub const ALLOWANCES: [(&str, &str, u64, u64); 4] = [
    ("resident memory", " KiB", 4096, 2),
    ("mappings", "", 8, 2),
    ("descriptors", "", 8, 2),
    ("threads", "", 4, 2),
];

/// How many samples a run should have, and must have: enough for medians of its quarters.
const SAMPLES: u32 = 40;
const SAMPLES_MIN: usize = 8;

/// The length of a run that has warmed up in its first half; and the factor for the allowances of a
/// shorter one.
pub const WARM: Duration = Duration::from_secs(60);
/// See [`WARM`].
pub const COLD_FACTOR: u64 = 4;

/// The usage at one moment, in the order of [`ALLOWANCES`].
type Sample = [u64; ALLOWANCES.len()];

/// What a process had in use over a run.
#[derive(Clone, Debug)]
pub struct Course {
    length: Duration,
    samples: Vec<Sample>,
}

impl Course {
    /// That of a run of this length.
    pub fn of(length: Duration) -> Self {
        Self { length, samples: Vec::new() }
    }

    /// How long to wait between two samples.
    pub fn interval(&self) -> Duration {
        (self.length / SAMPLES).min(Duration::from_secs(1))
    }

    /// Takes a sample.
    pub fn sample(&mut self, pid: u32) -> Result<()> {
        let taken = take(pid).map_err(Failure::because(format!("what {pid} has in use")))?;
        self.samples.push(taken);
        Ok(())
    }

    /// Fails if something has grown.
    pub fn expect_flat(&self) -> Result<()> {
        self.expect_growth(&[0; ALLOWANCES.len()])
    }

    /// Fails if a resource has grown by more than in another run of the same length: a run of the
    /// unchanged program, which may grow for other reasons.
    pub fn expect_flat_beside(&self, other: &Self) -> Result<()> {
        let mut growth = [0; ALLOWANCES.len()];
        for (index, growth) in growth.iter_mut().enumerate() {
            let (before, after) = other.quarters(index)?;
            *growth = after.saturating_sub(before);
        }
        self.expect_growth(&growth)
    }

    /// Fails if a resource has grown by more than this, in the order of [`ALLOWANCES`], and by more
    /// than is allowed anyway.
    fn expect_growth(&self, growth: &Sample) -> Result<()> {
        let factor = if self.length < WARM { COLD_FACTOR } else { 1 };
        for (index, (name, unit, units, percent)) in ALLOWANCES.iter().enumerate() {
            let (before, after) = self.quarters(index)?;
            let allowed = (before * percent / 100).max(*units) * factor + growth[index];
            ensure(after <= before + allowed, || {
                format!(
                    "growing {name}: {before}{unit} in the third quarter, {after}{unit} in the last; {allowed}{unit} more would be flat"
                )
            })?;
        }
        Ok(())
    }

    /// The medians of the third and the last quarter.
    fn quarters(&self, index: usize) -> Result<(u64, u64)> {
        let count = self.samples.len();
        ensure(count >= SAMPLES_MIN, || format!("only {count} samples of what is in use"))?;
        let median = |quarter: &[Sample]| {
            let mut values: Vec<_> = quarter.iter().map(|sample| sample[index]).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        let third = median(&self.samples[count / 2..count * 3 / 4]);
        let last = median(&self.samples[count * 3 / 4..]);
        Ok((third, last))
    }
}

/// From the third quarter to the last: `157 MiB, then 158 MiB`.
impl Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (index, (name, unit, ..)) in ALLOWANCES.iter().enumerate() {
            let (before, after) = self.quarters(index).map_err(|_| fmt::Error)?;
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{name} {before}")?;
            if after != before {
                write!(f, " then {after}")?;
            }
            write!(f, "{unit}")?;
        }
        Ok(())
    }
}

fn take(pid: u32) -> std::io::Result<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    let mappings = fs::read_to_string(format!("/proc/{pid}/maps"))?.lines().count();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    Ok([field("VmRSS"), mappings as u64, descriptors as u64, field("Threads")])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A course of this memory usage, with no other changes.
    fn course(memory: impl Iterator<Item = u64>) -> Course {
        Course { length: WARM, samples: memory.map(|memory| [memory, 100, 10, 5]).collect() }
    }

    #[test]
    fn warming_up_and_breathing_is_flat() {
        let warm = (0..200).map(|n| if n < 100 { n * 1000 } else { 100_000 + n % 7 * 300 });
        course(warm).expect_flat().unwrap();
    }

    #[test]
    fn a_leak_is_not() {
        let failure = course((0..200).map(|n| 100_000 + n * 200)).expect_flat().unwrap_err();
        assert!(failure.to_string().starts_with("growing resident memory: 125"), "{failure}");
        let mut descriptors = course((0..200).map(|_| 1));
        for (n, sample) in descriptors.samples.iter_mut().enumerate() {
            sample[2] += n as u64;
        }
        assert!(descriptors.expect_flat().unwrap_err().to_string().contains("descriptors"));
    }

    #[test]
    fn a_program_that_grows_anyway_may_do_so() {
        let growing = |step: u64| course((0..200).map(move |n| 100_000 + n * step));
        growing(200).expect_flat_beside(&growing(200)).unwrap();
        growing(400).expect_flat_beside(&growing(200)).unwrap_err();
        growing(200).expect_flat_beside(&course((0..200).map(|_| 100_000))).unwrap_err();
    }

    #[test]
    fn a_run_without_samples_is_no_evidence() {
        assert!(course((0..7).map(|_| 1)).expect_flat().is_err());
    }

    #[test]
    fn samples_of_this_process() {
        let mut course = Course::of(WARM);
        course.sample(std::process::id()).unwrap();
        assert!(course.samples[0].iter().all(|count| *count > 0), "{course:?}");
        assert!(course.sample(u32::MAX).is_err());
    }
}
