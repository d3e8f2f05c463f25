//! The library that moves system calls, together with other libraries in a process: the same
//! results as without it.
//!
//! `cargo test -p manycore-tests --test beside --release`

use std::time::Duration;

use manycore_tests::preload::{self, Beneath};
use manycore_tests::toolchain::Workshop;
use manycore_tests::{cases, child};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs the program above glibc and above another library, and returns that library's output on
/// standard error.
#[track_caller]
fn same_results(program: &str, product: &str, beneath: &Beneath) -> String {
    let workshop = Workshop::of("programs/syscalls");
    let library = workshop.shared_library("beside", product, &["-DCASE_LIBRARY"]);
    let executable = workshop.c_as(program, &format!("{program}-{product}"), &[]);
    let run = |beneath: &Beneath| {
        let mut command = executable.command();
        command.env("CASE_LIBRARY", &library);
        child::run(beneath.put(&mut command), "", LIMIT)
    };
    let (expected, got) = (run(&Beneath::glibc()), run(beneath));
    assert_eq!(cases::defects(&expected), [""; 0]);
    let differences = cases::differences(&expected, &got);
    assert!(differences.is_empty(), "{}", cases::account(product, &got, &differences));
    got.stderr
}

#[test]
fn above_thread() {
    same_results("beside", "above-thread", &Beneath::syscalls("thread"));
}

#[test]
fn above_pool() {
    let said = same_results("beside", "above-pool", &Beneath::syscalls("pool"));
    assert!(said.contains("EBUSY"), "no descriptor of a worker's was found: {said}");
    assert!(said.contains("signal 61 is in use"), "{said}");
}

/// How many processes have left statistics of a case.
fn left_by(case: &str) -> usize {
    let executable = Workshop::of("programs/syscalls").c_as("beside", "beside-counted", &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let beneath = Beneath::syscalls("thread").variable("MANYCORE_SYSCALLS_STATS", directory.path());
    let mut command = executable.command();
    command.arg(case);
    let outcome = child::run(beneath.put(&mut command), "", LIMIT);
    assert_eq!(cases::defects(&outcome), [""; 0]);
    assert!(!outcome.stdout.contains("SIG"), "{}", outcome.stdout);
    std::fs::read_dir(directory.path()).expect("the directory").count()
}

/// A forked child creates its file when it counts something, but before it forbids itself to open
/// any.
#[test]
fn statistics_of_children() {
    assert_eq!(left_by("confined_child"), 2);
    assert_eq!(left_by("idle_children"), 1);
}

#[test]
fn with_the_library_for_locks() {
    for lock_is_first in [true, false] {
        let both = Beneath::syscalls("pool").variable("MANYCORE_LOCK", "futex");
        let (both, product) = if lock_is_first {
            (both.library_first(preload::library()), "lock-first")
        } else {
            (both.library(preload::library()), "lock-last")
        };
        same_results("beside", product, &both);
        same_results("duplex", product, &both);
        same_results("cancelled", product, &both);
    }
}
