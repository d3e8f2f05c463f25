//! `manycore demo`: a finding computed from measurements, and a report that stays.

use std::fs;
use std::process::Command;

use crate::support::library;
use crate::support::{directory, failure, printed};
use serde_json::Value;

fn demo(home: &std::path::Path) -> Command {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_manycore"));
    demo.args(["demo", "--runs", "1"]).env("MANYCORE_PRELOAD", library());
    demo.env("XDG_CACHE_HOME", home).env_remove("LD_PRELOAD");
    demo
}

#[test]
fn it_ends_with_three_sentences_and_the_report() {
    let home = directory();
    let output = demo(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", crate::support::stderr(&output));
    assert_eq!(crate::support::stderr(&output), "", "quiet in a pipe");
    let said = crate::support::stdout(&output);
    let lines: Vec<&str> = said.trim_end().lines().collect();
    let [.., first, second, third, blank, path, page] = &lines[..] else { panic!("{said}") };
    assert_eq!(*blank, "");

    let directory = home.path().join("manycore/demo");
    assert_eq!(*path, directory.join("report.txt").to_str().unwrap());
    let report = fs::read_to_string(path).unwrap();
    assert_eq!(*page, directory.join("profile.html").to_str().unwrap());
    assert!(fs::read_to_string(page).unwrap().contains("cache_lock"));
    assert!([first, second, third].iter().all(|sentence| report.contains(**sentence)), "{report}");

    // The figures in the sentences are those of the run.
    let json = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(directory.join(name)).unwrap()).unwrap()
    };
    let profile = json("profile.json");
    assert_eq!(profile["finding"], **first);
    assert_eq!(profile["locks"][0]["short"], "cache_lock", "{report}");
    let comparison = json("comparison.json");
    let measured = comparison["measurements"].as_array().unwrap();
    assert_eq!((&measured[0]["lock"], measured.len()), (&"glibc".into(), 5), "{comparison:#}");
    for one in &measured[1..4] {
        let ratio = manycore_measure::ratio(one["metrics"]["ratio"]["value"].as_f64().unwrap());
        let lock = one["lock"].as_str().unwrap();
        assert!(second.contains(&format!("{lock} {ratio}")), "{second} {one:#}");
    }
    assert_eq!(measured[4]["parameters"]["checks"], "outside");

    // The server counts its work under its locks: eight threads, and batches of 64.
    let counted = |lock: &str| {
        let locks = profile["locks"].as_array().unwrap();
        locks.iter().find(|l| l["short"] == lock).unwrap()["acquired"].as_u64().unwrap()
    };
    assert_eq!(counted("cache_lock"), 64 * counted("totals_lock"));
}

#[test]
fn what_is_missing_is_said_at_once() {
    let home = directory();
    let mut without = demo(home.path());
    without.env("MANYCORE_PRELOAD", "/nonexistent/library.so");
    assert!(failure(2, &mut without).contains("/nonexistent/library.so"));
    let mut nowhere = demo(std::path::Path::new("/proc/none"));
    nowhere.env("TMPDIR", "/proc/none");
    let said = failure(2, &mut nowhere);
    assert!(said.contains("XDG_CACHE_HOME") && said.lines().count() == 1, "{said}");
}

#[test]
fn the_server_is_a_program_of_its_own() {
    let home = directory();
    demo(home.path()).output().unwrap();
    let server = home.path().join("manycore/demo/server");
    for arguments in [&["0.2", "3"][..], &["0.2", "3", "outside"]] {
        assert!(printed(Command::new(&server).args(arguments)).ends_with(" batches/s\n"));
    }
    for arguments in
        [&[][..], &["1"], &["1", "0"], &["1", "2", "inside"], &["1", "2", "outside", "4"]]
    {
        failure(2, Command::new(&server).args(arguments));
    }
}
