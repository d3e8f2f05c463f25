//! `manycore bench syscalls`: short conversations, a short Apache, and refusals.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::support::{directory, empty_library, executable, failure, manycore, printed};
use serde_json::Value;

/// A preloaded library that moves nothing: this does not test the measurements.
fn bench(library: &Path, more: &[&str]) -> Command {
    let mut command = manycore(&[&["bench", "syscalls"], more].concat());
    command.env("MANYCORE_SYSCALLS_PRELOAD", library);
    command
}

fn records(text: &str) -> Vec<Value> {
    let results: Value = serde_json::from_str(text).unwrap();
    results["measurements"].as_array().unwrap().clone()
}

#[test]
fn conversations_are_measured_under_each_policy() {
    let place = directory();
    let library = empty_library(place.path());
    let picture = place.path().join("calls.html");
    let size = ["--part", "latency,bandwidth", "--sizes", "4096,64", "--time", "20ms"];
    let what = ["--syscalls", "per-node,auto", "--rounds", "2", "--json", "-q", "--plot"];
    let arguments = [&size[..], &what, &[picture.to_str().unwrap()]].concat();
    let records = records(&printed(&mut bench(&library, &arguments)));
    let described: Vec<_> = records
        .iter()
        .map(|record| {
            assert!(record["value"].as_f64().unwrap() > 0.0 && record["repetitions"] == 2);
            let part = record["workload"].as_str().unwrap();
            let bytes = record["parameters"]["message_bytes"].as_f64().unwrap();
            (part, bytes, record["sync"].as_str().unwrap())
        })
        .collect();
    let mut expected = Vec::new();
    for part in ["syscalls-bandwidth", "syscalls-latency"] {
        for bytes in [64.0, 4096.0] {
            expected.extend(["none", "per-node", "auto"].map(|policy| (part, bytes, policy)));
        }
    }
    assert_eq!(described, expected);
    assert!(records[0]["metrics"].get("ratio").is_none(), "the base line has no ratio");
    assert!(records[1]["metrics"]["ratio"]["value"].as_f64().unwrap() > 0.0);
    let page = std::fs::read_to_string(picture).unwrap();
    assert!(page.contains("us there and back") && page.contains("MB/s"));
}

#[test]
fn bandwidth_is_measured_by_other_programs_too() {
    let place = directory();
    let library = empty_library(place.path());
    let drivers = if has_namespaces() { "nuttcp,iperf3,own" } else { "iperf3,own" };
    let what = ["--part", "bandwidth", "--sizes", "8192", "--driver", drivers];
    let how = ["--time", "50ms", "--budget", "0s", "--syscalls", "per-node", "--json", "-q"];
    let records = records(&printed(&mut bench(&library, &[&what[..], &how].concat())));
    let described: Vec<_> = records
        .iter()
        .map(|record| {
            let driver = record["parameters"]["driver"].as_str().unwrap();
            // The budget is over from the beginning: there is one round, whose value is one,
            // however many turns servers had.
            assert_eq!(record["repetitions"], 1);
            assert!(record["value"].as_f64().unwrap() > 0.0);
            let time = record["parameters"]["duration_ns"].as_f64().unwrap();
            (driver, record["sync"].as_str().unwrap(), time)
        })
        .collect();
    // Others' programs know whole seconds only.
    let expected = [("own", 5e7), ("iperf3", 1e9), ("nuttcp", 1e9)]
        .map(|(by, time)| [(by, "none", time), (by, "per-node", time)]);
    assert_eq!(described, expected[..drivers.split(',').count()].concat());
}

/// Whether nuttcp can have a network namespace; without one it is refused.
fn has_namespaces() -> bool {
    let tried = Command::new("unshare").args(["--map-root-user", "--net", "true"]).status();
    let has_them = tried.is_ok_and(|status| status.success());
    if !has_them {
        eprintln!("without nuttcp: the kernel refuses a network namespace");
    }
    has_them
}

#[test]
fn a_point_that_is_not_known_well_enough_has_all_rounds() {
    let place = directory();
    let library = empty_library(place.path());
    let what = ["--part", "latency", "--sizes", "64", "--syscalls", "per-node", "--time", "20ms"];
    let how = ["--precision", "0.01", "--rounds", "12", "--json", "-q"];
    let text = printed(&mut bench(&library, &[&what[..], &how].concat()));
    assert_eq!(records(&text)[0]["repetitions"], 12);
}

/// Puts a fake iperf3 into a directory. Its clients send nothing and print a rate; a client fails
/// if `fails` is true for its number `$n`.
fn fake_iperf3(place: &Path, fails: &str) -> OsString {
    let before = std::env::var("PATH").unwrap();
    let count = place.join("clients");
    let text = format!(
        r#"#!/bin/sh
[ "$1" = -s ] && {{ PATH='{before}'; exec iperf3 "$@"; }}
echo client >> '{count}'
n=$(grep -c client '{count}')
[ {fails} ] && exit 1
echo '{{"end": {{"sum_received": {{"bits_per_second": 800}}}}}}'
"#,
        count = count.display()
    );
    executable(place, "iperf3", text);
    let places = [place.to_owned()].into_iter().chain(std::env::split_paths(&before));
    std::env::join_paths(places).unwrap()
}

#[test]
fn a_round_that_fails_is_repeated_once_and_what_was_measured_is_printed() {
    let what = ["--part", "bandwidth", "--sizes", "64", "--driver", "iperf3", "--json"];
    let how = ["--syscalls", "per-node", "--rounds", "2"];
    // A round has six clients: three turns of two policies. The seventh is the first of the second
    // round.
    for (fails, status, rounds) in [("$n = 7", 0, 2), ("$n -ge 7", 1, 1)] {
        let place = directory();
        let library = empty_library(place.path());
        let mut command = bench(&library, &[&what[..], &how].concat());
        let done = command.env("PATH", fake_iperf3(place.path(), fails)).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{said}");
        assert!(said.contains("a round is repeated: bandwidth by iperf3, 64 bytes"), "{said}");
        for record in records(&String::from_utf8(done.stdout).unwrap()) {
            assert_eq!((&record["repetitions"], &record["value"]), (&rounds.into(), &100.0.into()));
        }
    }
}

#[test]
fn apache_is_measured_by_clients() {
    let place = directory();
    let library = empty_library(place.path());
    let size = ["--part", "apache", "--clients", "3,1", "--loops", "10", "--rounds", "1"];
    let what = ["--syscalls", "per-node", "--json", "-q"];
    let records = records(&printed(&mut bench(&library, &[&size[..], &what].concat())));
    let described: Vec<_> = records
        .iter()
        .map(|r| (r["threads"].as_u64().unwrap(), r["sync"].as_str().unwrap()))
        .collect();
    assert_eq!(described, [(1, "none"), (1, "per-node"), (3, "none"), (3, "per-node")]);
    assert!(records.iter().all(|record| record["value"].as_f64().unwrap() > 0.0));
    assert_eq!(records[0]["parameters"]["duration_ns"], 1e9, "wrk knows whole seconds only");
}

#[test]
fn jmeter_is_a_load_for_apache() {
    let home = std::env::var("JMETER_HOME").unwrap_or_else(|_| "/usr/share/jmeter".to_owned());
    if !Path::new(&home).join("lib/ext/ApacheJMeter_http.jar").is_file() {
        return eprintln!("skipped: JMeter is not installed (apt-get install jmeter jmeter-http)");
    }
    let place = directory();
    let library = empty_library(place.path());
    // A virtual machine beside other tests has no CPU for a second now and then.
    let time = ["--time", "4s"];
    let size = ["--part", "apache", "--clients", "2", "--loops", "10", "--rounds", "1"];
    let what = ["--syscalls", "per-node", "--driver", "jmeter", "--json", "-q"];
    let records = records(&printed(&mut bench(&library, &[&size[..], &time, &what].concat())));
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(record["parameters"]["driver"], "jmeter");
        assert!(record["value"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_program_that_is_missing_is_named_with_its_package() {
    let place = directory();
    let library = empty_library(place.path());
    let mut command = bench(&library, &["--part", "apache"]);
    // Whatever is in /usr/sbin: there is no wrk in this path.
    let said = failure(2, command.env("PATH", place.path()));
    assert!(said.contains("not installed") && said.contains("apt-get install"), "{said}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = directory();
    let library = empty_library(place.path());
    for (arguments, culprit) in [
        (&["--syscalls", "no-such-policy"][..], "no-such-policy"),
        (&["--syscalls", "auto,"], "empty policy"),
        (&["--sizes", "0"], "0 bytes"),
        (&["--part", "latency", "--driver", "wrk,iperf3"], "latency"),
        (&["--precision", "0"], "0 %"),
        (&["--time", "1ms", "--part", "latency"], "1ms"),
        (&["--part", "apaches"], "apaches"),
        (&["--clients", "0"], "0"),
        (&["--plot", "a.png", "--part", "latency"], ".svg"),
    ] {
        let said = failure(2, &mut bench(&library, arguments));
        assert!(said.contains(culprit), "{said}");
    }
}
