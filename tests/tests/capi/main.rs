//! The library for C: its examples and its mistakes, compiled with all of gcc's warnings, and run
//! under every checker.

mod examples;
mod interface;
mod misuse;

use std::path::{Path, PathBuf};
use std::time::Duration;

use manycore_tests::capi::{Variant, installed};
use manycore_tests::child::{self, End, Outcome};

/// The limit is long, because valgrind is slow and the machine may be busy. No test normally takes
/// that long.
const LIMIT: Duration = Duration::from_secs(300);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn program(name: &str) -> PathBuf {
    root().join("tests/programs/capi").join(name)
}

/// Compiles a program and runs it.
fn run(source: &Path, standard: &str, variant: Variant) -> Outcome {
    let installed = installed();
    let program = installed.compile(source, standard, variant);
    child::run(&mut installed.run(&program, variant), "", LIMIT)
}

#[track_caller]
fn succeeds(source: &Path, standard: &str, variant: Variant) -> String {
    let outcome = run(source, standard, variant);
    let success = matches!(outcome.end, End::Exited(status) if status.success());
    let name = source.display();
    let Outcome { end, stdout, stderr } = outcome;
    assert!(success, "{name}, {standard}, {variant:?}: {end}\n{stdout}\n{stderr}");
    stdout
}
