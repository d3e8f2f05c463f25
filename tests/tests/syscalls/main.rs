//! Descriptors, with and without the library that moves system calls: the same results, case by
//! case.
//!
//! `cargo test -p manycore-tests --test syscalls --release`; a mechanism's name chooses one.
//! `programs/syscalls/call.h` describes cases, and how to run a single one.

mod faults;
mod moves;
mod programs;

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::process::{Command, Stdio};

use manycore_tests::cases;
use manycore_tests::moved::Counted;
use manycore_tests::preload::Beneath;

use programs::SUITE;

/// At least this many functions `CASE`, and their results, are compared.
const CASES_MIN: usize = 250;
const RESULTS_MIN: usize = 2_500;

#[test]
fn the_cases_hold_above_glibc() {
    let accounts = SUITE.iter().filter_map(|program| {
        let defects = programs::defects(&program.expected);
        (!defects.is_empty()).then(|| cases::account(&program.name, &program.expected, &defects))
    });
    programs::report(accounts);
    let names = || SUITE.iter().flat_map(|program| cases::parse(&program.expected.stdout));
    let distinct: HashSet<_> = names().map(|(name, _)| name).collect();
    // PROGRAM.CASE.STEP
    let cases: HashSet<_> =
        distinct.iter().map(|name| name.splitn(3, '.').take(2).collect::<Vec<_>>()).collect();
    // Written directly, because the harness shows only the output of failing tests.
    let (results, cases) = (distinct.len(), cases.len());
    _ = writeln!(std::io::stderr(), "{results} results of {cases} cases");
    assert!(results >= RESULTS_MIN && cases >= CASES_MIN, "{results} results of {cases} cases");
}

/// Two runs above glibc agree: so a difference is not a matter of chance.
#[test]
fn glibc_against_itself() {
    programs::report(programs::check("above glibc again", |_| Beneath::glibc()));
}

#[test]
#[ignore = "takes minutes: for authors who change a case"]
fn glibc_against_itself_twenty_times() {
    for _ in 0..20 {
        glibc_against_itself();
    }
}

/// If the reader of standard error has ended, the library's message is lost, and the program still
/// runs.
#[test]
fn what_nobody_reads_ends_no_program() {
    let beneath =
        Beneath::syscalls("pool").variable("MANYCORE_SYSCALLS_STATS", "/proc/no-such-directory");
    let run = |stderr| {
        let mut command = Command::new("true");
        beneath.put(&mut command).stderr(stderr).output().expect("start a program")
    };
    let said = run(Stdio::piped());
    assert!(said.status.success() && !said.stderr.is_empty(), "{said:?}");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let lost = run(writer.into());
    assert!(lost.status.success(), "{lost:?}");
}

/// The results beneath a library are the same. Then it checks, by the library's statistics, how the
/// calls were made.
#[track_caller]
fn check(heading: &str, beneath: &Beneath, judge: impl FnOnce(&moves::Calls)) {
    let counts: BTreeMap<&str, Counted> =
        SUITE.iter().map(|program| (program.name.as_str(), Counted::new())).collect();
    let counted = |program: &str| counts[program].beneath(beneath);
    programs::report(programs::check(heading, counted));
    judge(&counts.iter().map(|(program, counted)| (*program, counted.calls())).collect());
}

mod under {
    use super::*;

    macro_rules! a_test_a_mechanism {
        ($($test:ident: $mechanism:literal;)*) => {
            $(
                #[test]
                fn $test() {
                    let beneath = Beneath::syscalls($mechanism);
                    check(concat!("under ", $mechanism), &beneath, |calls| match $mechanism {
                        "in-place" => moves::nothing(calls),
                        _ => moves::everything($mechanism, calls),
                    });
                }
            )*
        };
    }
    a_test_a_mechanism! {
        in_place: "in-place";
        thread: "thread";
        pool: "pool";
        uring: "uring";
    }

    /// Calls that are measured in place, and calls that are moved as trials, side by side.
    #[test]
    fn pool_as_measured() {
        check("under pool, as measured", &Beneath::syscalls_as_measured(), moves::some_of_both);
    }
}
