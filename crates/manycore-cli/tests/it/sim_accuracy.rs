//! `manycore sim accuracy`: simulations compared with this host, and with other people's
//! measurements.

use std::process::Command;

use crate::support::{failure, manycore};
use serde_json::Value;

fn accuracy(arguments: &[&str]) -> Command {
    manycore(&[&["sim", "accuracy"], arguments].concat())
}

#[test]
fn the_simulator_is_compared_with_this_host() {
    let arguments = ["--quick", "--machine", "xeon-4x6", "--no-cache", "-q"];
    let run = |more: &[&str]| {
        let output = accuracy(&[&arguments[..], more].concat()).output().unwrap();
        // Whether the claims hold is not for a run this short to say.
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let results: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let claims = results["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["accuracy-median", "accuracy-p90", "accuracy-order", "accuracy-parking"]);
    let count = |provenance: &str| {
        let records = results["measurements"].as_array().unwrap();
        records.iter().filter(|record| record["provenance"] == provenance).count()
    };
    assert_eq!((count("native"), count("simulated")), (216, 216));
}

#[test]
fn machines_are_compared_with_what_others_measured() {
    let run = |more: &[&str]| {
        let asked = ["--of", "machines", "--quick", "--no-cache", "-q"];
        let output = accuracy(&[&asked[..], more].concat()).output().unwrap();
        // Whether the claims hold is not for a run this short to say.
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let results: Value =
        serde_json::from_str(&run(&["--json", "--page", page.to_str().unwrap()])).unwrap();
    let ids = ["machines-factors", "machines-order", "machines-kinds"];
    let of_mutexes = ["mutexes-median", "mutexes-p90", "mutexes-order"];
    let claims = results["claims"].as_array().unwrap();
    let found: Vec<&str> = claims.iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(found, [ids, of_mutexes].concat());
    let records = results["measurements"].as_array().unwrap();
    let of = |provenance: &str| {
        let of_kind = |record: &&Value| record["provenance"] == provenance;
        records.iter().filter(of_kind).collect::<Vec<_>>()
    };
    let (published, simulated) = (of("published"), of("simulated"));
    assert_eq!(published.len(), simulated.len());
    for (published, simulated) in published.iter().zip(simulated) {
        let place = |record: &Value| {
            let parts = ["machine", "lock", "sync", "threads"].map(|name| record[name].clone());
            let names = ["set", "case", "subject", "series"];
            (parts, names.map(|name| record["parameters"][name].clone()))
        };
        assert_eq!(place(published), place(simulated));
        let ratio = simulated["value"].as_f64().unwrap() / published["value"].as_f64().unwrap();
        // The section of a mutex is as long as one task says.
        let is_told = published["workload"] == "batch" && published["threads"] == 1;
        assert!(!is_told || (0.8..1.25).contains(&ratio), "{simulated}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("id=\"lists-optik\""), "{page}");
}

#[test]
fn sets_machines_and_kinds_can_be_chosen() {
    let run = |more: &[&str]| {
        let asked = ["--of", "machines", "--quick", "--no-cache", "-q"];
        let output = accuracy(&[&asked[..], more].concat()).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run(&["--machine", "epyc-9454p-8x8", "--kind", "locks"]);
    assert!(table.contains("x86-64c and epyc-9454p-8x8-like"), "{table}");
    assert!(!table.contains("m1-ultra") && !table.contains("hand-over"), "{table}");
    let table = run(&["--set", "counters-graviton"]);
    assert!(table.contains("graviton2-16-like") && !table.contains("mutexes"), "{table}");
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../figures/measured/locks-cna.toml");
    assert!(run(&["--set", own]).contains("figures/measured/locks-cna.toml"));
    let refused =
        |more: &[&str]| failure(2, &mut accuracy(&[&["--of", "machines"], more].concat()));
    assert!(refused(&["--machine", "xeon-8280m-2x28x2"]).contains("nothing is published of"));
    assert!(refused(&["--set", "vax"]).contains("there is no set `vax`"));
    assert!(refused(&["--set", "bursts", "--threads", "5"]).contains("no published point is left"));
}

#[test]
fn structures_are_compared_with_this_host() {
    let asked = ["--of", "structures", "--quick", "--machine", "xeon-4x6", "--no-cache", "-q"];
    let output = accuracy(&[&asked[..], &["--json"]].concat()).output().unwrap();
    // Whether the claims hold is not for a run this short to say.
    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let claims = results["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims.iter().map(|claim| claim["id"].as_str().unwrap()).collect();
    let expected = ["median", "p90", "order"].map(|name| format!("accuracy-structures-{name}"));
    assert_eq!(ids, expected);
    // Each mechanism has both: the median has one comparison for each.
    let count = |provenance: &str| {
        let records = results["measurements"].as_array().unwrap();
        records.iter().filter(|record| record["provenance"] == provenance).count()
    };
    assert_eq!((count("native"), count("simulated")), (198, 198));
    assert!(claims[0]["note"].as_str().unwrap().starts_with("198 comparisons"));
}
