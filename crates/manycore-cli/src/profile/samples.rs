//! Samples of the CPU time: how many are wanted.

use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use manycore_kernel_trace::{Sampler, Scope};
use manycore_profile::analyze::cpu_samples::Samples;

/// More would be more of the CPU time than what they find.
const RATE_MAX: u32 = 4000;

/// How often: none if not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(Option<u32>);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "no" {
            return Ok(Self(None));
        }
        let rate = text.parse().ok().filter(|rate| (1..=RATE_MAX).contains(rate));
        rate.map(|rate| Self(Some(rate)))
            .ok_or_else(|| format!("`no`, or a number from 1 to {RATE_MAX}"))
    }
}

impl Rate {
    /// Begins to sample what is started from now on, or a process. An error says why there are no samples, and is no failure.
    pub fn start(self, scope: Scope) -> Option<Result<Sampler, String>> {
        self.0.map(|rate| Sampler::start(scope, rate))
    }
}

/// Ends the sampling of what ran so long with this library under it.
pub fn finish(
    sampler: Option<Result<Sampler, String>>,
    run: Duration,
    library: Option<&Path>,
) -> Option<Result<Samples, String>> {
    let mut samples = sampler.map(|sampler| sampler.map(|sampler| sampler.finish(run)));
    if let Some(Ok(samples)) = &mut samples {
        samples.library = library.map(Into::into);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_or_none() {
        assert_eq!("no".parse(), Ok(Rate(None)));
        assert_eq!("4000".parse(), Ok(Rate(Some(4000))));
        for wrong in ["0", "4001", "yes", "-1", ""] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
