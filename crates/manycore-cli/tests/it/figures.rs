//! `manycore figures`: claims are judged by simulations, and the written files can be read.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{directory, failure, manycore, printed};
use serde_json::Value;

/// A figure with a known result: more threads under one lock do not achieve twice the throughput,
/// and two do not achieve less than a hundredth.
const FIGURE: &str = r#"
title = "One <lock>"
source = "a test & nothing else"
published = "nothing"
model = "a list under one lock"
machine = "xeon-4x6-like"
x = "threads"

[workload.set]
structure = "list"
sync = ["lock:mcs", "harris"]
threads = [1, 8]
update = [50]
initial = 50
duration = "20us"

[quick]
threads = [1, 4]

[[parameter]]
name = "keys"
value = "50"
provenance = "assumed"

[[claim]]
id = "holds"
text = "eight threads under a lock do not do twice as much"
place = "here"
expected = "pass"
of = { series = "lock:mcs", take = "most" }
over = { series = "lock:mcs", threads = 1 }
at_most = 2

[[claim]]
id = "breaks"
text = "it does a hundred times as much as another"
place = "here"
expected = "fail"
why = "it is a lock"
of = { series = "lock:mcs", threads = 8 }
over = { series = "harris", threads = 8 }
at_least = 100
published = 600

[[claim]]
id = "elsewhere"
text = "it is green"
place = "here"
published_only = "a simulation has no colour"
"#;

/// The command with this figure and a cache of its own.
fn figures(room: &Path, figure: &str, more: &[&str]) -> Command {
    let file = room.join("one-lock.toml");
    fs::write(&file, figure).unwrap();
    let mut command = manycore(&["figures", file.to_str().unwrap(), "-q"]);
    command.args(more).env("XDG_CACHE_HOME", room.join("cache"));
    command
}

#[test]
fn claims_are_judged_and_everything_is_written() {
    let room = directory();
    let out = room.path().join("out");
    let text = printed(&mut figures(
        room.path(),
        FIGURE,
        &["--json", "--check", "--out", out.to_str().unwrap()],
    ));
    let results: Value = serde_json::from_str(&text).unwrap();
    let claims = results["claims"].as_array().unwrap();
    let verdicts: Vec<&str> = claims.iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "fail", "published only"]);
    assert_eq!(claims[1]["id"], "one-lock/breaks");
    assert_eq!((&claims[1]["published"], &claims[1]["expected"]), (&600.0.into(), &"fail".into()));
    assert_eq!(results["measurements"].as_array().unwrap().len(), 4);
    assert_eq!(results["measurements"][0]["parameters"]["figure"], "one-lock");

    // The value is that of the records.
    let value = |sync: &str, threads: u32| {
        let mut records = results["measurements"].as_array().unwrap().iter();
        let record = records.find(|m| m["sync"] == sync && m["threads"] == threads).unwrap();
        record["value"].as_f64().unwrap()
    };
    let ratio = value("lock:mcs", 8) / value("harris", 8);
    assert_eq!(claims[1]["value"].as_f64().unwrap(), ratio);

    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("One &lt;lock&gt;") && page.contains("a test &amp; nothing else"));
    assert!(!page.contains("<script") && !page.contains("src="), "{page}");
    let table = fs::read_to_string(out.join("one-lock.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.starts_with("series,threads,cpus,update,zipf,value,"), "{table}");
    assert!(table.contains(",simulated,xeon-4x6-like,"), "{table}");
    for picture in ["one-lock-1.svg", "one-lock-2.svg"] {
        assert!(fs::read_to_string(out.join(picture)).unwrap().contains("lock:mcs"), "{picture}");
    }
    // Again, from the cache: the same to the byte.
    assert_eq!(text, printed(&mut figures(room.path(), FIGURE, &["--json"])));
}

#[test]
fn a_band_holds_the_value() {
    let room = directory();
    let text = printed(&mut figures(room.path(), FIGURE, &["--bands", "--json"]));
    let results: Value = serde_json::from_str(&text).unwrap();
    let [low, value, high] =
        ["low", "value", "high"].map(|name| results["claims"][1][name].as_f64().unwrap());
    assert!(low <= value && value <= high && low < high, "{low} {value} {high}");
    let record = &results["measurements"][3];
    assert_eq!(record["threads"], 8);
    assert!(record["low"].as_f64() < record["high"].as_f64(), "{record}");
}

#[test]
fn what_a_short_run_leaves_out_is_not_judged() {
    let room = directory();
    let short = ["--quick", "--json", "--check"];
    let text = printed(&mut figures(room.path(), FIGURE, &short));
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["measurements"][3]["threads"], 4);
    // Eight threads were not run.
    assert_eq!(results["claims"][1]["verdict"], "undecided");
    assert_eq!(results["claims"][1]["note"], "not judged: it was not run");
}

#[test]
fn a_claim_that_was_to_pass_and_fails_is_an_error_where_that_is_asked_for() {
    let room = directory();
    let broken = FIGURE.replace("at_most = 2", "at_most = 0.001");
    let table = printed(&mut figures(room.path(), &broken, &[]));
    assert!(table.contains("one-lock/holds failed: eight threads"), "{table}");
    let output = figures(room.path(), &broken, &["--check"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("one-lock/holds") && !message.contains("breaks"), "{message}");
}

#[test]
fn a_bad_file_is_named_with_what_is_wrong() {
    let room = directory();
    for (from, to, wrong) in [
        ("machine = \"xeon-4x6-like\"", "machine = \"xeon-9\"", "xeon-9"),
        ("x = \"threads\"", "x = \"moons\"", "moons"),
        ("at_most = 2", "", "claim `holds`: it has no bound"),
        ("why = \"it is a lock\"", "", "claim `breaks`"),
        ("id = \"breaks\"", "id = \"holds\"", "another has the same id"),
        ("\"harris\"]", "\"harris\", \"lock:x\"]", "lock:x"),
        ("threads = [1, 8]", "threads = [1, 8]\ncolour = 1", "colour"),
        ("threads = 8 }", "threads = 9 }", "has no threads 9"),
        ("x = \"threads\"", "x = \"cpus\"", "no cpus to draw by"),
        ("update = [50]", "update = [2, 50]", "add `update` to `panels`"),
        ("at_most = 2", "at_most = 2\nat_least = 3", "`at_least` is above `at_most`"),
    ] {
        let message = failure(2, &mut figures(room.path(), &FIGURE.replace(from, to), &[]));
        assert!(message.contains(wrong) && message.contains("one-lock"), "{wrong}: {message}");
    }
    let message = failure(2, &mut manycore(&["figures", "figure-4"]));
    assert!(message.contains("figure-4") && message.contains("mvrlu-hash"));
    let list = printed(&mut manycore(&["figures", "--list"]));
    assert!(list.contains("ldu-aim7") && list.contains("khronos-hash"), "{list}");
}
