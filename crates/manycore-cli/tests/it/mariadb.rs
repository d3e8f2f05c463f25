//! `manycore bench mariadb`: a small database, once under a lock and once without.

use std::process::Command;

use crate::support::{failure, manycore, printed};
use serde_json::Value;

/// With the place where Debian keeps servers.
fn bench(more: &[&str]) -> Command {
    let mut command = manycore(&[&["bench", "mariadb"], more].concat());
    command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap()));
    command
}

#[test]
fn a_small_database_is_measured() {
    let size = ["--rows", "1000", "--time", "1s", "--runs", "1", "--terminals", "4", "--cpus", "1"];
    let what = ["--lock", "futex", "--mix", "75:25", "--spin", "0/0", "--json", "-q"];
    let text = printed(&mut bench(&[&size[..], &what].concat()));
    let results: Value = serde_json::from_str(&text).unwrap();
    let records = results["measurements"].as_array().unwrap();
    let locks: Vec<&str> = records.iter().map(|record| record["lock"].as_str().unwrap()).collect();
    assert_eq!(locks, ["glibc", "futex"]);
    for record in records {
        assert!(record["value"].as_f64().unwrap() > 0.0);
        assert_eq!((&record["threads"], &record["update"]), (&4.into(), &25.0.into()));
        assert_eq!(record["parameters"]["cpus"], 1.0);
    }
    let share = |name: &str| records[1]["metrics"][name]["value"].as_f64().unwrap();
    let whole = share("cpu_kernel") + share("cpu_program") + share("cpu_locks");
    assert!((whole - 100.0).abs() < 0.1, "{whole}");
    assert!(records[0]["metrics"].get("cpu_locks").is_none(), "nothing is counted under glibc");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, culprit) in [
        (["--cpus", "100000"], "100000 CPUs"),
        (["--mix", "75"], "no mix"),
        (["--spin", "30"], "how InnoDB spins"),
        (["--time", "10ms"], "whole seconds"),
        (["--lock", "anderson"], "too large"),
    ] {
        let said = failure(2, &mut bench(&arguments));
        assert!(said.contains(culprit), "{said}");
    }
}
