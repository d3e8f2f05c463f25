//! `manycore report`: its output for a profile from a file, and its error for a file that is no
//! profile.

use std::fs;

use crate::support::{directory, failure, manycore, printed};

const EXAMPLE: &str = include_str!("../../../manycore-profile/src/profile/example.json");

#[test]
fn the_table_is_that_of_the_profile() {
    let directory = directory();
    let file = directory.path().join("prof.json");
    fs::write(&file, EXAMPLE).unwrap();
    let file = file.to_str().unwrap();
    let table = printed(&mut manycore(&["report", file]));
    assert!(table.starts_with("./server 3 8\n2 virtual CPUs (A CPU), Linux 6.1.0"), "{table}");
    assert!(table.contains("cache_lock") && table.contains("636184"), "{table}");
    let by_hold = printed(&mut manycore(&["report", file, "--sort", "hold", "--top", "1"]));
    assert!(
        by_hold.contains("longest held first") && by_hold.contains("2 more locks"),
        "{by_hold}"
    );
}

#[test]
fn other_forms_go_to_files_or_stdout() {
    let directory = directory();
    let [file, page, trace, pprof, firefox] =
        ["prof.json", "page.html", "trace.json", "prof.pb.gz", "firefox.json"]
            .map(|name| directory.path().join(name));
    fs::write(&file, EXAMPLE).unwrap();
    let [file, page_name, trace_name, pprof_name, firefox_name] =
        [&file, &page, &trace, &pprof, &firefox].map(|path| path.to_str().unwrap());
    let folded = printed(&mut manycore(&[
        "report",
        file,
        "--html",
        page_name,
        "--folded",
        "-",
        "--perfetto",
        trace_name,
        "--pprof",
        pprof_name,
        "--firefox",
        firefox_name,
    ]));
    assert!(fs::read(pprof).unwrap().starts_with(&[0x1f, 0x8b]), "it is compressed");
    assert!(fs::read_to_string(firefox).unwrap().contains("[cache_lock]"));
    assert!(folded.lines().next().unwrap().starts_with("[cache_lock] 1086"), "{folded}");
    assert!(fs::read_to_string(page).unwrap().starts_with("<!doctype html>"));
    let trace: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(trace).unwrap()).unwrap();
    assert_eq!(trace["traceEvents"][0]["args"]["name"], "./server 3 8");
}

#[test]
fn only_one_form_goes_to_stdout() {
    let directory = directory();
    let file = directory.path().join("prof.json");
    fs::write(&file, EXAMPLE).unwrap();
    let file = file.to_str().unwrap();
    let said = failure(2, &mut manycore(&["report", file, "--html", "-", "--folded", "-"]));
    assert!(said.contains("--html and --folded would be mixed on stdout"), "{said}");
    let both = ["profile", "--json", "-", "--perfetto", "-", "--", "true"];
    let said = failure(2, &mut manycore(&both));
    assert!(said.contains("--json and --perfetto would be mixed on stdout"), "{said}");
}

#[test]
fn what_cannot_be_read_or_written_is_said_in_a_line() {
    let directory = directory();
    let file = directory.path().join("prof.json");
    let said = |text: &str, arguments: &[&str], words: &[&str]| {
        fs::write(&file, text).unwrap();
        let said =
            failure(2, &mut manycore(&[&["report", file.to_str().unwrap()], arguments].concat()));
        assert!(said.starts_with("manycore: ") && said.lines().count() == 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
    };
    said(
        &EXAMPLE[..EXAMPLE.len() / 2],
        &[],
        &["prof.json", "cut short", "manycore profile --json"],
    );
    said(
        &EXAMPLE.replacen("\"schema\": 1", "\"schema\": 9", 1),
        &[],
        &["schema 9", "this command reads 1"],
    );
    said("no profile, but text", &[], &["is no JSON"]);
    said(EXAMPLE, &["--html", "/nonexistent/page.html"], &["/nonexistent/page.html", "--html"]);
    let missing = failure(2, &mut manycore(&["report", "/nonexistent/prof.json"]));
    assert!(
        missing.contains("/nonexistent/prof.json") && missing.lines().count() == 1,
        "{missing}"
    );
}

#[test]
fn names_cannot_drive_the_terminal() {
    let directory = directory();
    let file = directory.path().join("prof.json");
    fs::write(&file, EXAMPLE.replace("cache_lock", "cache\\u001b[31m_lock")).unwrap();
    let table = printed(&mut manycore(&["report", file.to_str().unwrap()]));
    assert!(table.contains("cache\u{fffd}[31m_lock") && !table.contains('\u{1b}'), "{table}");
}
