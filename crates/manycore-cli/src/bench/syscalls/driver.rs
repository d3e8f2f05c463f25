//! Who talks: the programs that put something on the calls that are measured.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;
use manycore_bench::conversation::{Answer, Order, What};

use super::apache::{Apache, installed};
use super::policy::Policy;
use super::{Part, Point, nuttcp};
use manycore_compare::trial::{Load, Outcome, Plan, Ready};
use manycore_launch::failure::{Failure, Result};

/// How much longer than its time a run may take.
const GRACE: Duration = Duration::from_secs(60);

/// A program, or two, that drive a part of the benchmark.
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

    /// Whether it can drive a part. What iperf3 and nuttcp say of latency is the kernel's guess.
    pub fn drives(self, part: Part) -> bool {
        match part {
            Part::Bandwidth => matches!(self, Self::Own | Self::Iperf3 | Self::Nuttcp),
            Part::Latency => self == Self::Own,
            Part::Apache => matches!(self, Self::Wrk | Self::Jmeter),
        }
    }

    /// Fails if it is not installed. JMeter is looked for when its plan is compiled.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Own | Self::Jmeter => Ok(()),
            Self::Nuttcp => nuttcp::check(),
            Self::Iperf3 | Self::Wrk => installed(self.name(), self.name()).map(drop),
        }
    }

    /// How long its runs measure when they are asked to for a time: others' programs know whole seconds only.
    pub fn measures_for(self, time: Duration) -> Duration {
        match self {
            Self::Own | Self::Jmeter => time,
            Self::Iperf3 | Self::Nuttcp | Self::Wrk => {
                Duration::from_secs(time.as_nanos().div_ceil(1_000_000_000).max(1) as u64)
            }
        }
    }
}

/// What is done for one policy at one point.
pub struct Work {
    /// The program under the policy; a server with its load, or one that needs none.
    pub plan: Plan,
    /// A load before the first one that counts.
    pub warm_up: Option<OsString>,
    /// What came out of a run.
    pub value: fn(&Outcome) -> Result<f64>,
}

impl Work {
    /// At a point, for a run of so long; `apache` is there if a point needs it.
    pub fn new(
        point: Point,
        policy: &Policy,
        time: Duration,
        apache: Option<&Apache>,
    ) -> Result<Self> {
        let time = point.driver.measures_for(time);
        match (point.driver, apache) {
            (Driver::Own, _) => own(point, policy, time),
            (Driver::Iperf3, _) => iperf3(policy, point.level, time),
            (Driver::Nuttcp, _) => nuttcp::work(policy, point.level, time),
            (Driver::Wrk | Driver::Jmeter, Some(apache)) => apache.work(point, policy, time),
            (driver @ (Driver::Wrk | Driver::Jmeter), None) => {
                Err(Failure::failed(format!("{} has no Apache to drive", driver.name())))
            }
        }
    }
}

/// Two processes of this command, both under the policy.
fn own(point: Point, policy: &Policy, time: Duration) -> Result<Work> {
    let what = if point.part == Part::Latency { What::Latency } else { What::Bandwidth };
    let order =
        Order { what, message_bytes: point.level, warm_up: time / 5, measured: time, port: None };
    let plan = Plan {
        command: policy.conversation(&order)?,
        prepare: None,
        load: None,
        timeout: time + GRACE,
    };
    Ok(Work { plan, warm_up: None, value: answer })
}

/// What the first of the two processes said.
fn answer(outcome: &Outcome) -> Result<f64> {
    let line = outcome.output.lines().next().unwrap_or_default();
    let answer: Answer = serde_json::from_str(line)
        .map_err(|error| Failure::failed(format!("the answer '{line}' is none: {error}")))?;
    Ok(answer.value)
}

/// Both ends of iperf3, each under the policy. Like all servers here it listens on the loopback interface only.
fn iperf3(policy: &Policy, bytes: usize, time: Duration) -> Result<Work> {
    let (length, seconds) = (bytes.to_string(), time.as_secs().to_string());
    let server = ["iperf3", "-s", "-B", "127.0.0.1", "-p", "{port}", "--forceflush"];
    let client =
        ["iperf3", "-c", "127.0.0.1", "-p", "{port}", "-l", &length, "-t", &seconds, "--json"];
    let over = |words: &[&str]| policy.over(words.iter().map(OsString::from));
    let load = Load {
        command: for_shell(&over(&client)?)?,
        ready: Ready::Tcp("127.0.0.1:{port}".into()),
        ready_timeout: GRACE,
        grace: GRACE,
    };
    let plan =
        Plan { command: over(&server)?, prepare: None, load: Some(load), timeout: time + GRACE };
    Ok(Work { plan, warm_up: None, value: received })
}

/// What iperf3's server received, in bytes a second.
fn received(outcome: &Outcome) -> Result<f64> {
    let report: serde_json::Value = serde_json::from_str(&outcome.output).unwrap_or_default();
    let bits = report["end"]["sum_received"]["bits_per_second"].as_f64();
    bits.map(|bits| bits / 8.0).ok_or_else(|| {
        Failure::failed("iperf3 did not print how much was transferred")
            .with_output(&outcome.output)
    })
}

/// Words as the shell reads them.
pub fn for_shell(words: &[OsString]) -> Result<OsString> {
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let joined = words.and_then(|words| shlex::try_join(words).ok());
    joined.map(OsString::from).ok_or_else(|| {
        Failure::bad_input(
            "the path of this command cannot be written to a shell",
            "install it under a name of ordinary characters",
        )
    })
}

/// How long the load of a server may take to begin and to end.
pub const fn grace() -> Duration {
    GRACE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_iperf3_prints_is_understood() {
        let report = r#"{"end": {"sum_received": {"bits_per_second": 800}}}"#;
        assert_eq!(received(&Outcome::said(report)).unwrap(), 100.0);
        assert!(received(&Outcome::said(r#"{"error": "refused"}"#)).is_err());
    }

    #[test]
    fn seconds_are_whole_and_at_least_one_where_a_driver_knows_no_others() {
        let of = |milliseconds| {
            Driver::Wrk.measures_for(Duration::from_millis(milliseconds)).as_millis()
        };
        assert_eq!([of(20), of(1_000), of(1_001)], [1_000, 1_000, 2_000]);
        assert_eq!(Driver::Own.measures_for(Duration::from_millis(20)).as_millis(), 20);
    }

    #[test]
    fn a_driver_without_what_it_drives_is_no_other_driver() {
        let point = Point { part: Part::Apache, driver: Driver::Wrk, level: 1 };
        assert!(Work::new(point, &Policy::none(), Duration::from_secs(1), None).is_err());
    }

    #[test]
    fn both_ends_are_under_the_policy() {
        let auto = super::super::policy::list("auto").unwrap();
        let work = iperf3(auto.iter().next().unwrap(), 64, Duration::from_secs(1)).unwrap();
        let load = work.plan.load.unwrap().command.into_string().unwrap();
        assert!(load.contains("run --quiet --syscalls auto -- iperf3 -c"), "{load}");
        let server = for_shell(&work.plan.command).unwrap().into_string().unwrap();
        assert!(server.contains("run --quiet --syscalls auto -- iperf3 -s"), "{server}");
        assert!(server.contains("-B 127.0.0.1"), "it is for the loopback interface only: {server}");
    }
}
