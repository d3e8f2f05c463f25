//! The programs of the suite, and each one's output above glibc alone.

use std::io::{self, Write};
use std::sync::LazyLock;
use std::time::Duration;

use manycore_tests::cases;
use manycore_tests::child::{self, Outcome};
use manycore_tests::preload::Beneath;
use manycore_tests::toolchain::{Executable, Workshop};

/// How long a program may run, all of its cases together; one case that hangs takes ten seconds of
/// it.
const LIMIT: Duration = Duration::from_secs(120);

const PROGRAMS: &[&str] = &[
    "cancelled",
    "connections",
    "datagrams",
    "duplex",
    "events",
    "files",
    "flags",
    "fortified",
    "handlers",
    "moving",
    "nonblocking",
    "numbers",
    "options",
    "passing",
    "processes",
    "sides",
    "signals",
    "stdio_sockets",
    "ties",
    "timeouts",
    "transfers",
    "vectors",
    "wrong_kind",
];

/// The same source compiled as distributions compile their programs.
const FORTIFIED: [(&str, &str); 2] =
    [("fortified-2", "-D_FORTIFY_SOURCE=2"), ("fortified-3", "-D_FORTIFY_SOURCE=3")];

/// A program that is ready to run.
pub struct Program {
    pub name: String,
    pub executable: Executable,
    /// What it does above glibc.
    pub expected: Outcome,
}

pub static WORKSHOP: LazyLock<Workshop> = LazyLock::new(|| Workshop::of("programs/syscalls"));

/// All of them, compiled and run once.
pub static SUITE: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let plain = PROGRAMS.iter().map(|name| (*name, WORKSHOP.c(name, &[])));
    let fortified = FORTIFIED.iter().map(|(product, flag)| {
        (*product, WORKSHOP.c_as("fortified", product, &["-U_FORTIFY_SOURCE", flag]))
    });
    plain
        .chain(fortified)
        .map(|(name, executable)| {
            let expected = run(&executable, &Beneath::glibc());
            Program { name: name.to_owned(), executable, expected }
        })
        .collect()
});

/// A program of the suite by its name.
pub fn program(name: &str) -> &'static Program {
    SUITE.iter().find(|program| program.name == name).expect("a program of the suite")
}

/// Accounts of what is different on top of something.
pub fn check(heading: &str, beneath: impl Fn(&str) -> Beneath + Sync) -> Vec<String> {
    child::two_at_a_time(SUITE.iter(), |program| program.check(heading, &beneath(&program.name)))
}

impl Program {
    /// A summary of the differences on top of a library, or an empty string.
    fn check(&self, heading: &str, beneath: &Beneath) -> Option<String> {
        let got = run(&self.executable, beneath);
        if got.stderr.contains("system calls go to the pool") {
            let name = &self.name;
            _ = writeln!(
                io::stderr(),
                "{name} {heading}: the kernel refuses io_uring, so this is the pool"
            );
        }
        let differences = cases::differences(&self.expected, &got);
        let heading = format!("{} {heading}", self.name);
        (!differences.is_empty()).then(|| cases::account(&heading, &got, &differences))
    }
}

fn run(executable: &Executable, beneath: &Beneath) -> Outcome {
    child::run(beneath.put(&mut executable.command()), "", LIMIT)
}

/// The faults that make a run useless for comparison. A case that hangs or dies is reported by
/// itself.
pub fn defects(outcome: &Outcome) -> Vec<String> {
    let strange = cases::parse(&outcome.stdout).into_iter().filter(|(name, result)| {
        *result == "hangs" || !name.contains('.') || result.starts_with("dies of")
    });
    cases::defects(outcome)
        .into_iter()
        .chain(strange.map(|(name, result)| format!("{name}: {result}")))
        .collect()
}

/// Fails with the accounts of all differences, if there are any.
#[track_caller]
pub fn report(accounts: impl IntoIterator<Item = String>) {
    let accounts: Vec<_> = accounts.into_iter().collect();
    assert!(accounts.is_empty(), "{} programs differ\n{}", accounts.len(), accounts.join("\n"));
}
