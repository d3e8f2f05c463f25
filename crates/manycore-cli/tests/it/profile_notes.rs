//! "What would help": each note on a program that was built to show it, and no note on a program
//! without the problem.

use crate::support::real::{Profiled, profile};
use crate::support::{compile, directory, skipped, stderr};

const NOTES: &str = include_str!("programs/notes.c");

/// Runs a mode of the program; returns the causes of the advice, each once, in alphabetical order.
/// `None` if this machine cannot show it.
fn causes(mode: &str) -> Option<(Vec<String>, Profiled)> {
    let directory = directory();
    let program = compile(directory.path(), "notes", NOTES, &["-O1", "-pthread"]);
    let profiled = profile(&[program.to_str().unwrap(), mode]);
    if profiled.output.status.code() == Some(77) {
        skipped("there is one CPU only");
        return None;
    }
    assert_eq!(profiled.output.status.code(), Some(0), "{}", stderr(&profiled.output));
    let notes = profiled.json["notes"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<String> =
        notes.iter().map(|note| note["cause"].as_str().unwrap().to_owned()).collect();
    causes.sort();
    causes.dedup();
    Some((causes, profiled))
}

/// The pieces of advice about a lock's use and cost: each mode leads to its own.
const OF_USE: [&str; 3] = ["read-mostly", "readers-exclude", "update-heavy"];
const OF_COST: [&str; 2] = ["hot-lock", "long-hold"];
const OF_PLACE: [&str; 1] = ["false-sharing"];
const OF_SPINNING: [&str; 1] = ["spinning-oversubscribed"];

/// Checks that a mode has exactly these of some causes, and that the evidence of the advice
/// contains these words. A busy machine may add other causes.
fn shows(mode: &str, among: &[&str], expected: &[&str], evidence: &str) {
    // On a busy machine a lock's cost depends on the CPU time that others leave: it may differ in
    // one run, but not in all.
    let mut runs = (0..5).map(|_| {
        let (mut causes, profiled) = causes(mode)?;
        causes.retain(|cause| among.contains(&cause.as_str()));
        Some((causes, profiled))
    });
    let shown = |run: &Option<(Vec<String>, Profiled)>| {
        run.as_ref().is_none_or(|(causes, _)| causes == expected)
    };
    let first = runs.next().unwrap();
    let run = if shown(&first) { first } else { runs.find(shown).unwrap_or(first) };
    let Some((causes, profiled)) = run else { return };
    assert_eq!(causes, expected, "{mode}: {:#}", profiled.json["notes"]);
    let notes = profiled.json["notes"].as_array();
    let said = |text: &serde_json::Value| text.as_str().unwrap().contains(evidence);
    assert!(
        expected.is_empty() || notes.unwrap().iter().any(|note| said(&note["evidence"])),
        "{mode}: {notes:#?}"
    );
    // What the page and the JSON say, the table says, too.
    for note in notes.into_iter().flatten() {
        let words: Vec<&str> = note["advice"].as_str().unwrap().split_whitespace().collect();
        let text = stderr(&profiled.output);
        let table: Vec<&str> = text.split_whitespace().collect();
        assert!(table.windows(words.len()).any(|part| part == words), "{note:#}\n{text}");
    }
}

#[test]
fn a_lock_that_is_held_for_long_is_told_from_a_hot_one() {
    shows("long", &OF_COST, &["long-hold"], "of the run; ");
    shows("hot", &OF_COST, &["hot-lock"], "of 4800 acquisitions had to wait");
    shows("calm", &OF_COST, &[], "");
}

#[test]
fn what_a_reader_writer_lock_is_used_for_is_told() {
    shows(
        "reads=95",
        &OF_USE,
        &["read-mostly"],
        "1520 of 1600 acquisitions were for reading, 80 for writing",
    );
    shows(
        "reads=10",
        &OF_USE,
        &["update-heavy"],
        "160 of 1600 acquisitions were for reading, 1440 for writing",
    );
    shows("reads=50", &OF_USE, &[], "");
    // It is a mutex in all but name.
    shows("reads=0", &OF_USE, &["readers-exclude"], "0 of 1600 acquisitions were for reading");
}

#[test]
fn spinning_is_a_matter_where_threads_outnumber_cpus() {
    let evidence = "of the CPU time went into waits for locks";
    shows("spin-many", &OF_SPINNING, &OF_SPINNING, evidence);
    let (causes, _) = causes("spin-one").unwrap();
    assert!(!causes.contains(&OF_SPINNING[0].to_owned()));
}

/// What no library can be put under, samples tell.
#[test]
fn so_is_spinning_for_locks_of_the_programs_own() {
    let note = |mode: &str| {
        let (_, profiled) = causes(mode).unwrap();
        if let Some(why) = profiled.json["cpu_samples"]["refused"].as_str() {
            skipped(why);
            return None;
        }
        let notes = profiled.json["notes"].as_array().cloned().unwrap_or_default();
        let own = |note: &serde_json::Value| {
            note["evidence"].as_str().unwrap().contains("spin_until_free")
        };
        Some(
            notes
                .iter()
                .filter(|note| own(note))
                .map(|note| note["cause"].clone())
                .collect::<Vec<_>>(),
        )
    };
    let Some(many) = note("spin-itself-many") else { return };
    assert_eq!(many, ["spinning-oversubscribed"]);
    assert_eq!(note("spin-itself-one").unwrap().len(), 0);
}

#[test]
fn locks_in_one_line_are_found_and_those_apart_are_not() {
    shows("close", &OF_PLACE, &["false-sharing"], "moved between CPUs 1499 and 1499 times");
    shows("apart", &OF_PLACE, &[], "");
}
