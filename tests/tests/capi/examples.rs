//! Every example, in each standard and under each watcher.

use std::path::PathBuf;

use manycore_tests::capi::{Variant, installed};

use crate::{program, root, succeeds};

const STANDARDS: &[(&str, &[&str])] = &[("c", &["c99", "c11"]), ("cc", &["c++17"])];

fn examples() -> Vec<PathBuf> {
    let folder = root().join("crates/manycore-capi/examples");
    let mut examples: Vec<_> = folder
        .read_dir()
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    examples.sort();
    examples
}

fn all_succeed(variant: Variant) {
    let examples = examples();
    assert!(examples.len() >= 5, "{examples:?}");
    for example in examples {
        let standards =
            STANDARDS.iter().find(|(kind, _)| example.extension().is_some_and(|e| e == *kind));
        let (_, standards) = standards.expect("C or C++");
        // The first variant is enough where the program is the same.
        let chosen = if variant == Variant::Shared { standards } else { &standards[..1] };
        for standard in chosen {
            succeeds(&example, standard, variant);
        }
    }
}

#[test]
fn with_the_shared_library() {
    all_succeed(Variant::Shared);
}

#[test]
fn with_the_static_library() {
    all_succeed(Variant::Static);
}

/// Statically, and with an rpath: neither program needs anything in the environment.
#[test]
fn as_the_book_links_them() {
    let (installed, list) = (installed(), root().join("crates/manycore-capi/examples/list.c"));
    for (name, flags) in [("list-static", &["-static"][..]), ("list-rpath", &[])] {
        let list = installed.compile_as_told(&list, name, flags);
        let output = std::process::Command::new(&list).env_remove("LD_LIBRARY_PATH").output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{name}: {output:?}");
    }
}

#[test]
fn under_the_address_sanitizer() {
    all_succeed(Variant::Address);
}

#[test]
fn under_the_thread_sanitizer() {
    all_succeed(Variant::Thread);
}

#[test]
fn under_valgrind() {
    all_succeed(Variant::Valgrind);
}

#[test]
fn what_programs_of_the_papers_do() {
    for variant in Variant::ALL {
        let said = succeeds(&program("papers.c"), "c11", variant);
        let lines: Vec<_> = said.lines().collect();
        let ends = (lines.first().copied(), lines.last().copied());
        assert_eq!(ends, (Some("before"), Some("after")), "out of order:\n{said}");
        assert_eq!(lines.len(), 6, "{said}");
    }
}
