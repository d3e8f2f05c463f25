//! `manycore bench syscalls`: short conversations, a short Apache, and what is refused.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{directory, empty_library, failure, manycore, printed};

/// A library that is preloaded and moves nothing: what is measured is not what this tests.
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
fn apache_is_measured_by_clients() {
    let place = directory();
    let library = empty_library(place.path());
    let size = ["--part", "apache", "--clients", "3,1", "--loops", "10", "--rounds", "1"];
    let what = ["--syscalls", "auto", "--json", "-q"];
    let records = records(&printed(&mut bench(&library, &[&size[..], &what].concat())));
    let described: Vec<_> = records
        .iter()
        .map(|r| (r["threads"].as_u64().unwrap(), r["sync"].as_str().unwrap()))
        .collect();
    assert_eq!(described, [(1, "none"), (1, "auto"), (3, "none"), (3, "auto")]);
    assert!(records.iter().all(|record| record["value"].as_f64().unwrap() > 0.0));
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
        (&["--time", "1500ms"], "whole seconds"),
        (&["--time", "1ms", "--part", "latency"], "1ms"),
        (&["--part", "apaches"], "apaches"),
        (&["--clients", "0"], "0"),
        (&["--plot", "a.png", "--part", "latency"], ".svg"),
    ] {
        let said = failure(2, &mut bench(&library, arguments));
        assert!(said.contains(culprit), "{said}");
    }
}
