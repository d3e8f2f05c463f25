//! How long and where to measure, as the flags of every benchmark in slices say.

use std::time::Duration;

use crate::slice::Pinning;
use clap::{Args, ValueEnum};
use humantime::parse_duration;
use manycore_measure::paired::Rounds;

/// Slices, and how many of them.
#[derive(Args, Debug)]
pub struct SliceOptions {
    /// Time to measure each candidate at each point, in slices
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    duration: Duration,
    /// Time for everything, instead of --duration
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "duration")]
    budget: Option<Duration>,
    /// Length of a slice; longer where there are many threads to a CPU
    #[arg(long, value_name = "TIME", default_value = "30ms", value_parser = parse_duration)]
    pub slice: Duration,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
}

impl SliceOptions {
    /// How many rounds of slices that is.
    pub fn rounds(&self) -> Rounds {
        let slices = self.duration.as_secs_f64() / self.slice.as_secs_f64().max(1e-9);
        self.budget.map_or(Rounds::Count(slices.ceil() as u32), Rounds::Within)
    }

    /// Which CPUs threads run on.
    pub fn pinning(&self) -> Pinning {
        self.pin.pinning()
    }
}

/// Which CPUs threads run on.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Pin {
    /// Each thread has a CPU of its own, if there are enough CPUs.
    Auto,
    /// Left to the scheduler
    None,
    /// A CPU for each thread, round robin
    Each,
}

impl Pin {
    /// As the workload knows it.
    pub fn pinning(self) -> Pinning {
        match self {
            Self::Auto => Pinning::Auto,
            Self::None => Pinning::None,
            Self::Each => Pinning::Each,
        }
    }
}
