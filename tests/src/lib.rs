//! Real programs as tests: compiled from `programs/`, run with and without the preload library,
//! compared.
//!
//! A program under test prints one line for each case, `name result`, and nothing else. Every lock
//! has to give the same result for a case as glibc: a test runs the program unchanged, runs it
//! again with the library preloaded, and [`cases::differences`] lists the disagreements. A program
//! that hangs is [stopped](child::run) and counts as disagreeing, from the first case that it did
//! not reach.
//!
//! | module | what is in it |
//! |---|---|
//! | [`toolchain`] | compiles a program, or names the package that is missing |
//! | [`child`] | runs it, for no longer than a limit |
//! | [`capi`] | installs the library for C, and compiles programs with it |
//! | [`preload`] | builds the library under test and puts it beneath a program |
//! | [`moved`] | which system calls a program had executed elsewhere, by its own statistics |
//! | [`cases`] | reads cases, and compares two runs |
//! | [`servers`] | real network programs |
//! | [`soak`] | servers under load, whose answers have to add up |
//!
//! # An example
//!
//! ```
//! use std::{process::Command, time::Duration};
//! use manycore_tests::{cases, child};
//!
//! let run = |text| child::run(Command::new("printf").arg(text), "", Duration::from_secs(10));
//! let expected = run("mutex.lock 0\nmutex.trylock EBUSY\n");
//! let got = run("mutex.lock 0\nmutex.trylock 0\n");
//! assert_eq!(cases::differences(&expected, &got), ["mutex.trylock: expected EBUSY, got 0"]);
//! ```
//!
//! # A new case
//!
//! Add the case to the program of its object, or to a new one, which has to be in the list in
//! `tests/conformance/programs.rs`. `programs/case.h` has helpers for cases: threads that make one
//! call, deadlines, children, printing.

pub mod capi;
pub mod cases;
pub mod child;
pub mod moved;
pub mod preload;
pub mod servers;
pub mod soak;
pub mod toolchain;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// How long a program may run. Most take less than a second.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Where cargo builds this workspace: `target`, unless configured otherwise.
///
/// # Panics
///
/// If the running executable is not one that cargo built.
pub fn target() -> &'static Path {
    profile().1.parent().expect("cargo puts tests three levels below its target")
}

/// The cargo profile with which this test was built, and cargo's directory for builds with that
/// profile.
///
/// # Panics
///
/// If the running executable is not one that cargo built.
pub fn profile() -> (&'static str, &'static Path) {
    static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
        // target/DIRECTORY/deps/TEST
        let this = std::env::current_exe().expect("the running test has a path");
        this.ancestors().nth(2).expect("cargo puts tests three levels below its target").to_owned()
    });
    let name = DIRECTORY.file_name().and_then(|name| name.to_str()).expect("cargo names it");
    (if name == "debug" { "dev" } else { name }, &DIRECTORY)
}
