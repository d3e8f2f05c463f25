//! Profiles from files that were cut, edited, or are something else: one line each, with culprit
//! and remedy.

use std::path::Path;

use super::made_up::profile;
use manycore_profile::profile::Profile;
use manycore_profile::profile::read;
use manycore_profile::render::page;
use serde_json::{Value, json};

fn written() -> String {
    serde_json::to_string_pretty(&profile(6, 3)).unwrap()
}

/// What is said of a text.
fn said(text: &str) -> String {
    let said = read::from_text("x.json", text).expect_err("it is no profile").to_string();
    assert!(!said.contains('\n') && said.contains("'x.json'"), "{said}");
    assert!(said.contains("manycore"), "no remedy: {said}");
    said
}

/// The value at a path of names and numbers.
fn at<'a>(json: &'a mut Value, path: &str) -> &'a mut Value {
    json.pointer_mut(&format!("/{path}")).unwrap_or_else(|| panic!("no {path}"))
}

/// The error for a profile in which one value is changed.
fn edited(pointer: &str, value: Value) -> String {
    let mut json: Value = serde_json::from_str(&written()).unwrap();
    *at(&mut json, pointer) = value;
    said(&json.to_string())
}

#[test]
fn what_is_written_is_read() {
    let tamed = written().replace("\u{2028}", " ");
    let read = read::from_text("x.json", &tamed).unwrap();
    assert_eq!(read, serde_json::from_str::<Profile>(&tamed).unwrap());
}

#[test]
fn unknown_fields_are_ignored_and_missing_ones_named() {
    let mut json: Value = serde_json::from_str(&written()).unwrap();
    json["new"] = json!({"a": [1, 2]});
    json["locks"][0]["new"] = json!(null);
    assert!(read::from_text("x.json", &json.to_string()).is_ok());
    json.as_object_mut().unwrap().remove("wall");
    assert!(said(&json.to_string()).contains("missing field `wall`"));
}

#[test]
fn cut_files_are_said_to_be_cut() {
    let whole = written();
    for at in (1..whole.trim_end().len()).step_by(97) {
        let said = said(&whole[..whole.floor_char_boundary(at)]);
        assert!(said.contains("is cut short"), "{at}: {said}");
    }
    assert!(said("").contains("is cut short"));
}

#[test]
fn other_files_are_said_to_be_no_profiles() {
    assert!(said("lock,wait\n1,2\n").contains("is no JSON"));
    assert!(said("[1, 2]").contains("is no "));
    assert!(said("{\"schema\": 2, \"new\": 1}").contains("has schema 2, and this command reads 1"));
    assert!(said(&"[".repeat(100_000)).contains("is no "), "no overflow of the stack");
    assert!(edited("locks", json!({})).contains("is no profile"));
}

#[test]
fn numbers_that_cannot_be_are_named() {
    for (pointer, value, name) in [
        ("wall", json!(-1.0), "wall is -1"),
        ("wall", json!(1e300), "wall is 1"),
        ("cpu/lock_wait", json!(-0.5), "cpu is -0.5"),
        ("locks/2/contended_share", json!(7.0), "contended_share is 7"),
        ("locks/2/acquired", json!(-3), "-3"),
        ("stacks/1/lock", json!(6), "stacks names lock 6, and there are 6"),
        ("timeline/intervals/3/waits/0/lock", json!(u64::MAX), "timeline names lock"),
        ("threads/0/waits/0/lock", json!(99), "threads names lock 99"),
        ("cycles/0/orders/0", json!(2), "cycles names order 2"),
        ("notes/0/lock", json!(77), "notes names lock 77"),
    ] {
        let said = edited(pointer, value);
        assert!(said.contains(name), "{pointer}: {said}");
    }
    let text = written().replace("\"wall\": 10.0", "\"wall\": 1e999");
    assert!(said(&text).contains("out of range"));
}

#[test]
fn huge_counts_are_shown() {
    let mut json: Value = serde_json::from_str(&written()).unwrap();
    for pointer in
        ["locks/0/acquired", "locks/0/wait/total_ns", "stacks/0/wait_ns", "stacks/1/wait_ns"]
    {
        *at(&mut json, pointer) = json!(u64::MAX);
    }
    for interval in json["timeline"]["intervals"].as_array_mut().unwrap() {
        interval["waits"][0]["wait_ns"] = json!(u64::MAX);
    }
    let profile = read::from_text("x.json", &json.to_string()).unwrap();
    assert!(page::html(&profile).contains("18446744073709551615"));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), Path::new("/nonexistent/prof.json"), Path::new("/proc/self/mem")]
    {
        let said = read::from_file(path).unwrap_err().to_string();
        assert!(said.contains(path.to_str().unwrap()) && said.lines().count() == 1, "{said}");
    }
    let binary = directory.path().join("binary");
    std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    assert!(read::from_file(&binary).unwrap_err().to_string().contains("UTF-8"));
}
