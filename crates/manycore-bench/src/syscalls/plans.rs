//! What each driver is started with, and what it says.

use std::ffi::OsString;
use std::time::Duration;

use manycore_compare::trial::{Load, Outcome, Plan, Ready};
use manycore_launch::failure::{Failure, Result};

use super::apache::Apache;
use super::conversation::{Answer, Order, What};
use super::driver::Driver;
use super::policy::Policy;
use super::tools::{GRACE, for_shell, installed};
use super::work::Work;
use super::{Part, Point, nuttcp};

/// Fails if a driver is not installed. JMeter is checked when its plan is compiled.
pub fn check(driver: Driver) -> Result<()> {
    match driver {
        Driver::Own | Driver::Jmeter => Ok(()),
        Driver::Nuttcp => nuttcp::check(),
        Driver::Iperf3 | Driver::Wrk => installed(driver.name(), driver.name()).map(drop),
    }
}

/// The work at a point, for a run of this length. `apache` is prepared if a point needs it.
pub fn work(
    point: Point,
    policy: &Policy,
    time: Duration,
    apache: Option<&Apache>,
) -> Result<Work> {
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
        ..Plan::default()
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

/// Both ends of iperf3, each under the policy. Like all servers here it listens on the loopback
/// interface only.
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
    let plan = Plan {
        command: over(&server)?,
        prepare: None,
        load: Some(load),
        timeout: time + GRACE,
        ..Plan::default()
    };
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
        assert!(work(point, &Policy::none(), Duration::from_secs(1), None).is_err());
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
