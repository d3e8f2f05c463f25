//! Algorithms and crates open with their page.
//!
//! An algorithm's page has five headings, in this order; a crate's page is for newcomers and has an
//! example that runs as a test.

use crate::Finding;
use crate::source::{Source, TREE, file_name};

const ALGORITHMS: &[&str] = &["crates/manycore/src/lock/", "crates/manycore/src/delegate/"];
/// Folders that are one algorithm each.
const FOLDERS: &[&str] = &[
    "crates/manycore/src/reclaim/",
    "crates/manycore/src/rlu/",
    "crates/manycore/src/mvrlu/",
    "crates/manycore/src/ldu/",
    "crates/manycore/src/oplog/",
];
/// Whether a file is an algorithm, by the beginning of its page: other files arrange code from
/// elsewhere.
const SOME: &str = "crates/manycore/src/collections/";
const HEADINGS: &[&str] =
    &["# Idea", "# Source", "# Memory order", "# Cost", "# When not to use it"];

/// Files beside the algorithms that are none: name and reason.
const NO_ALGORITHM: &[(&str, &str)] = &[
    ("mod.rs", "a module's contents"),
    ("numbers.rs", "numbers that are drawn"),
    ("condvar.rs", "a wait queue with guards"),
    ("defaults.rs", "names for the locks to begin with"),
    ("plain.rs", "the interface of locks that are used without a node"),
    (
        "preference.rs",
        "the interface of reader-writer locks that leave it to readers who goes first",
    ),
    ("gate.rs", "a word at which one thread waits for a message"),
    ("link.rs", "a pointer between the nodes of a queue"),
    ("top_word.rs", "a word before a queue, of which locks are made"),
    ("queue.rs", "a queue of places, of which locks are made"),
    ("guarded.rs", "a value under any lock, of which structures are made"),
    ("held.rs", "an acquisition that ends with its scope"),
    ("held_queue.rs", "a queue whose head holds a lock, of which locks are made"),
    ("registry.rs", "the list of all locks"),
    ("side_door.rs", "the way of readers past a lock, and of writers to shut it"),
    ("waiter/mod.rs", "a waiting thread's record, which several algorithms queue"),
];

/// Crates without an example: name and reason.
const NO_EXAMPLE: &[(&str, &str)] = &[
    (
        "manycore-preload",
        "a C library that shadows the locks which the test harness itself runs on",
    ),
    (
        "manycore-syscalls",
        "a C library that shadows the functions which the test harness itself runs on",
    ),
    ("manycore-interpose", "what it has calls past, or ends, the program that it is in"),
    ("manycore-capi", "a C library; its examples are in C, and the tests run them"),
    ("timestone-capi", "a C library; its examples are in C, and the tests run them"),
];

/// The `//!` lines with which the file opens, without their marks.
fn page(file: &Source) -> Vec<&str> {
    file.lines.iter().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect()
}

fn check_algorithm(file: &Source) -> Vec<Finding> {
    let page = page(file);
    let mut from = 0;
    let mut findings = Vec::new();
    for heading in HEADINGS {
        let text_of = |at: usize| page[at + 1..].iter().take_while(|line| !line.starts_with("# "));
        match page[from..].iter().position(|line| line == heading).map(|at| from + at) {
            Some(at) if text_of(at).any(|line| !line.is_empty()) => from = at + 1,
            Some(at) => findings.push(Finding::new(
                &file.path,
                at + 1,
                format!("nothing under `{heading}`"),
            )),
            None => findings.push(Finding::new(
                &file.path,
                from + 1,
                format!("the page at the top lacks `{heading}`, or has it out of order"),
            )),
        }
    }
    findings
}

fn check_crate(file: &Source) -> Option<Finding> {
    let page = page(file);
    let library = file_name(&file.path) == "lib.rs";
    let exempt = NO_EXAMPLE.iter().any(|(name, _)| file.is_source_of(name));
    let advice = if page.is_empty() {
        "open with a page for newcomers, in `//!` lines"
    } else if library && !exempt && !has_example(&page) {
        "show a first example on the page at the top, and let it run (a code block that is plain Rust)"
    } else {
        return None;
    };
    Some(Finding::new(&file.path, 1, advice))
}

/// Whether the page has a code block that rustdoc compiles and runs.
fn has_example(page: &[&str]) -> bool {
    let fences = page.iter().filter_map(|line| line.strip_prefix("```"));
    fences.step_by(2).any(|language| matches!(language, "" | "rust"))
}

/// A file beside `mod.rs`, the top of a folder with the parts of one algorithm, or a file that
/// declares itself one.
fn is_algorithm(file: &&Source) -> bool {
    if FOLDERS.iter().any(|folder| file.path.strip_prefix(folder) == Some("mod.rs")) {
        return true;
    }
    if file.path.starts_with(SOME) {
        return page(file).iter().any(|line| HEADINGS.contains(line));
    }
    let Some(name) = ALGORITHMS.iter().find_map(|place| file.path.strip_prefix(place)) else {
        return false;
    };
    let exempt = NO_ALGORITHM.iter().any(|(listed, _)| *listed == name);
    !exempt && (!name.contains('/') || name.ends_with("/mod.rs"))
}

fn is_root(file: &&Source) -> bool {
    let mut parts = file.path.split('/');
    parts.next() == Some("crates")
        && matches!(parts.skip(1).collect::<Vec<_>>()[..], ["src", "lib.rs" | "main.rs"])
}

#[test]
fn algorithms_open_with_their_page() {
    crate::report(TREE.iter().filter(is_algorithm).flat_map(check_algorithm));
}

#[test]
fn crates_open_with_a_page_for_newcomers() {
    crate::report(TREE.iter().filter(is_root).filter_map(check_crate));
}

#[test]
fn notices_a_poor_page() {
    let good = "//! a\n//! # Idea\n//! x\n//! # Source\n//! x\n//! # Memory order\n//! x\n//! # Cost\n//! x\n//! # When not to use it\n//! x\n";
    let findings = |text: &str| check_algorithm(&Source::new("a.rs", text)).len();
    assert_eq!(findings(good), 0);
    assert_eq!(findings("use a;"), HEADINGS.len());
    assert_eq!(findings(&good.replace("Cost", "Costs")), 1);
    assert_eq!(findings(&good.replace("# Cost\n//! x", "# Cost\n//!")), 1);
}

#[test]
fn notices_a_crate_without_example() {
    let check = |text| check_crate(&Source::new("crates/a/src/lib.rs", text)).is_some();
    assert!(check("mod a;"));
    assert!(check("//! A crate."));
    assert!(check("//! A crate.\n//! ```text\n//! x\n//! ```"));
    assert!(check("//! A crate.\n//! ```ignore\n//! x\n//! ```"));
    assert!(!check("//! A crate.\n//! ```\n//! x\n//! ```"));
}
