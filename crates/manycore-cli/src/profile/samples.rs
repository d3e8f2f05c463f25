//! Samples of the CPU time: how many are wanted, and what they say.

use std::fmt::Write;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use manycore_kernel_trace::{Sampler, Scope};
use manycore_profile::profile::{CpuSamples, Part};
use manycore_profile::samples::Samples;

use crate::profile::table::{percent, shortened};

/// More would be more of the CPU time than what they find.
const RATE_MAX: u32 = 4000;
/// Less than this is not worth a line.
const SHARE_MIN: f64 = 0.01;
/// Functions that are named of a part, and the room for each.
const FUNCTIONS: usize = 2;
const NAME: usize = 32;

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

/// What samples add to where the time went: who spins, as far as the library's clocks do not tell, and what is not known.
pub fn text(samples: &CpuSamples) -> String {
    if let Some(why) = &samples.refused {
        return format!("Sampled stacks of the CPU time: {why}\n");
    }
    let shares = &samples.shares;
    let mut parts = Vec::new();
    let spinning = [
        (shares.spin_program, Part::SpinProgram, "locks of the program's own"),
        (shares.spin_kernel.unwrap_or_default(), Part::SpinKernel, "the kernel's"),
    ];
    for (share, part, whose) in spinning.into_iter().filter(|(share, ..)| *share >= SHARE_MIN) {
        parts.push(format!("{} for {whose} ({})", percent(share), functions(samples, part)));
    }
    let mut text = String::new();
    if !parts.is_empty() {
        let of = if samples.kernel_permitted { "" } else { " outside of the kernel" };
        let parts = parts.join(", ");
        let _ =
            writeln!(text, "Spinning, of the CPU time{of} by {} samples: {parts}", samples.taken);
    }
    if samples.lost > 0 {
        let _ = writeln!(text, "Of the samples {} were lost.", samples.lost);
    }
    text
}

/// The functions that do most of it.
fn functions(samples: &CpuSamples, part: Part) -> String {
    let of = samples.functions.iter().filter(|function| function.part == part);
    let names: Vec<_> = of.take(FUNCTIONS).map(|one| shortened(&one.name, NAME)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use manycore_profile::profile::{SampleSource, SampledFunction, Shares};

    use super::*;

    #[test]
    fn a_rate_is_a_number_or_none() {
        assert_eq!("no".parse(), Ok(Rate(None)));
        assert_eq!("4000".parse(), Ok(Rate(Some(4000))));
        for wrong in ["0", "4001", "yes", "-1", ""] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_spins_is_named_and_what_does_not_is_no_news() {
        let function = |name: &str, part| SampledFunction {
            name: name.to_owned(),
            module: "mysqld".to_owned(),
            part,
            samples: 5,
            share: 0.1,
        };
        let quiet = CpuSamples {
            source: Some(SampleSource::CpuClock),
            taken: 400,
            kernel_permitted: true,
            shares: Shares { program: 0.999, spin_kernel: Some(0.001), ..Shares::default() },
            functions: vec![
                function("work", Part::Program),
                function("ut_delay", Part::SpinProgram),
                function("osq_lock", Part::SpinKernel),
            ],
            ..CpuSamples::default()
        };
        assert_eq!(text(&quiet), "");
        let shares = Shares { spin_program: 0.23, spin_kernel: Some(0.05), ..quiet.shares };
        let loud = CpuSamples { shares, lost: 3, ..quiet };
        assert_eq!(
            text(&loud),
            "Spinning, of the CPU time by 400 samples: 23 % for locks of the program's own (ut_delay), 5.0 % for the kernel's \
             (osq_lock)\n\
             Of the samples 3 were lost.\n"
        );
        let outside = text(&CpuSamples { kernel_permitted: false, ..loud });
        assert!(
            outside.starts_with("Spinning, of the CPU time outside of the kernel by "),
            "{outside}"
        );
        let refused = CpuSamples { refused: Some("not permitted".into()), ..CpuSamples::default() };
        assert_eq!(text(&refused), "Sampled stacks of the CPU time: not permitted\n");
    }
}
