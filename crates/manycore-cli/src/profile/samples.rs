//! Samples of the CPU time: how many are wanted.

use std::str::FromStr;

use manycore_kernel_trace::{Sampler, Scope};
use manycore_profile::record::kernel_side::CpuSampler;

/// More samples would take more of the CPU time than their findings are worth.
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
    /// Starts to sample programs that are started from now on, or a process. An error is the reason
    /// why there are no samples, and no failure.
    pub fn start(self, scope: Scope) -> Option<Result<Box<dyn CpuSampler>, String>> {
        self.0.map(|rate| Ok(Box::new(Sampler::start(scope, rate)?) as Box<dyn CpuSampler>))
    }
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
