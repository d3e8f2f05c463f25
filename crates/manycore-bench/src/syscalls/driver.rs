//! The drivers: programs that make the measured calls.

use std::time::Duration;

use clap::ValueEnum;

use super::Part;

/// A program, or two programs, that drive a part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Driver {
    /// Two processes of this command.
    Own,
    /// iperf3.
    Iperf3,
    /// nuttcp.
    Nuttcp,
    /// wrk.
    Wrk,
    /// JMeter, as the publication has it.
    Jmeter,
}

impl Driver {
    /// The name of its option and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Iperf3 => "iperf3",
            Self::Nuttcp => "nuttcp",
            Self::Wrk => "wrk",
            Self::Jmeter => "jmeter",
        }
    }

    /// Whether it can drive a part. For latency, iperf3 and nuttcp only report the kernel's
    /// estimate.
    pub fn drives(self, part: Part) -> bool {
        match part {
            Part::Bandwidth => matches!(self, Self::Own | Self::Iperf3 | Self::Nuttcp),
            Part::Latency => self == Self::Own,
            Part::Apache => matches!(self, Self::Wrk | Self::Jmeter),
        }
    }

    /// The duration of its runs, if a time is requested. Programs of other projects take whole
    /// seconds only.
    pub fn measures_for(self, time: Duration) -> Duration {
        match self {
            Self::Own | Self::Jmeter => time,
            Self::Iperf3 | Self::Nuttcp | Self::Wrk => {
                Duration::from_secs(time.as_nanos().div_ceil(1_000_000_000).max(1) as u64)
            }
        }
    }
}
