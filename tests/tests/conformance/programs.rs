//! The programs of the suite, and each one's output above glibc alone.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;

use manycore_tests::child::{self, Outcome};
use manycore_tests::preload::Beneath;
use manycore_tests::toolchain::{Executable, Workshop};
use manycore_tests::{LIMIT, cases};

enum Language {
    C,
    Cpp,
    /// C, with GLib.
    Glib,
    Python,
    Java,
}
use Language::{C, Cpp, Glib, Java, Python};

/// Name, language, and whether it takes too long to be run under every lock.
const PROGRAMS: &[(&str, Language, bool)] = &[
    ("mutex_kinds", C, false),
    ("mutex_timed", C, false),
    ("mutex_attributes", C, false),
    ("mutex_robust", C, false),
    ("mutex_priority", C, false),
    ("mutex_shared", C, false),
    ("mutex_contended", C, false),
    ("rwlock_basic", C, false),
    ("rwlock_timed", C, false),
    ("rwlock_crowd", C, false),
    ("spin", C, false),
    ("cond_basic", C, false),
    ("cond_timed", C, false),
    ("cond_mixed", C, false),
    ("cond_life", C, false),
    ("c11_mutex", C, false),
    ("c11_cond", C, false),
    ("once", C, false),
    ("cancel", C, false),
    ("cancel_steps", C, false),
    ("cancel_unwinds", Cpp, false),
    ("cancel_gone", C, false),
    ("fork", C, false),
    ("unwiped", C, false),
    ("renumbered", C, false),
    ("forks_past", C, false),
    ("sandbox", C, false),
    ("counter", C, false),
    ("ends", C, false),
    ("early", C, false),
    ("loading", C, false),
    ("versions", C, false),
    ("signals", C, false),
    ("surroundings", C, false),
    ("own_malloc", C, false),
    ("eager_malloc", C, false),
    ("lookups", C, false),
    ("many_objects", C, false),
    ("std_mutex", Cpp, false),
    ("std_waiting", Cpp, false),
    ("glib", Glib, false),
    ("many_threads", C, true),
    ("threads", Python, true),
    ("Threads", Java, true),
];

/// The standard input of every program; one of them reads it.
const INPUT: &str = "a line for the program\n";

/// A program that is ready to run.
pub struct Program {
    pub name: &'static str,
    pub executable: Executable,
    /// Whether it takes too long to be run under every lock.
    pub is_heavy: bool,
    /// What it does above glibc.
    pub expected: Outcome,
}

/// The libraries that programs load at run time.
pub struct Loaded {
    library: PathBuf,
    others: [PathBuf; 2],
}

pub static WORKSHOP: LazyLock<Workshop> = LazyLock::new(Workshop::new);

static LOADED: LazyLock<Loaded> = LazyLock::new(|| Loaded {
    library: WORKSHOP.shared_library("library", "library", &[]),
    others: ["another", "third"].map(|name| WORKSHOP.shared_library("library", name, &[])),
});

/// All of them, compiled and run once.
pub static SUITE: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let workers = thread::available_parallelism().map_or(1, |n| n.get());
    let ready =
        |worker: usize| PROGRAMS.iter().skip(worker).step_by(workers).map(prepare).collect();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|w| scope.spawn(move || ready(w))).collect();
        let results = workers.into_iter().map(|w| w.join());
        results.flat_map(|r: Result<Vec<_>, _>| r.expect("every program compiles")).collect()
    })
});

/// A program of the suite by its name.
pub fn program(name: &str) -> &'static Program {
    SUITE.iter().find(|program| program.name == name).expect("a program of the suite")
}

fn prepare((name, language, is_heavy): &'static (&'static str, Language, bool)) -> Program {
    let executable = match language {
        C => WORKSHOP.c(name, &[]),
        Cpp => WORKSHOP.cpp(name),
        Glib => WORKSHOP.c_with_glib(name),
        Python => WORKSHOP.python(name),
        Java => WORKSHOP.java(name),
    };
    let expected = run(&executable, &Beneath::glibc(), LIMIT);
    Program { name, executable, is_heavy: *is_heavy, expected }
}

impl Program {
    /// Runs it on top of something.
    pub fn run(&self, beneath: &Beneath) -> Outcome {
        run(&self.executable, beneath, LIMIT)
    }

    /// A summary of the differences on top of a library, or an empty string.
    pub fn check(&self, heading: &str, beneath: &Beneath) -> Option<String> {
        let got = self.run(beneath);
        let differences = cases::differences(&self.expected, &got);
        let heading = format!("{} {heading}", self.name);
        (!differences.is_empty()).then(|| cases::account(&heading, &got, &differences))
    }
}

/// Runs a program of the suite. Its other libraries are harmless, unless `beneath` names another
/// one.
pub fn run(executable: &Executable, beneath: &Beneath, limit: std::time::Duration) -> Outcome {
    let mut command = executable.command();
    let others = LOADED.others.each_ref().map(|path| path.as_os_str()).join(":".as_ref());
    command.env("CASE_LIBRARY", &LOADED.library).env("CASE_AGAIN", others);
    child::run(beneath.put(&mut command), INPUT, limit)
}

/// Fails with the accounts of all differences, if there are any.
#[track_caller]
pub fn report(accounts: impl IntoIterator<Item = String>) {
    let accounts: Vec<_> = accounts.into_iter().collect();
    assert!(accounts.is_empty(), "{} programs differ\n{}", accounts.len(), accounts.join("\n"));
}
