//! Descriptors, with and without the library that moves system calls: the same results, case by case.
//!
//! `cargo test -p manycore-tests --test syscalls --release`; a mechanism's name chooses one. What a case is, and how one
//! is run by itself, is told in `programs/syscalls/call.h`.

mod faults;
mod programs;

use std::collections::HashSet;
use std::io::Write;

use manycore_tests::cases;
use manycore_tests::preload::Beneath;

use programs::SUITE;

/// At least that many distinct results are compared. The product promises 250 cases.
const RESULTS_MIN: usize = 2_000;

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
    let functions: HashSet<_> =
        distinct.iter().map(|name| name.splitn(3, '.').take(2).collect::<Vec<_>>()).collect();
    assert!(distinct.len() >= RESULTS_MIN, "{} results of at least {RESULTS_MIN}", distinct.len());
    // Past the harness, which shows what failing tests print only.
    let (results, functions) = (distinct.len(), functions.len());
    _ = writeln!(std::io::stderr(), "{results} results of {functions} cases");
}

/// Two runs above glibc agree: what the suite finds is not chance.
#[test]
fn glibc_against_itself() {
    check("above glibc again", &Beneath::glibc());
}

#[test]
#[ignore = "takes minutes: for whoever changes a case"]
fn glibc_against_itself_twenty_times() {
    for _ in 0..20 {
        glibc_against_itself();
    }
}

#[track_caller]
fn check(heading: &str, beneath: &Beneath) {
    programs::report(SUITE.iter().filter_map(|program| program.check(heading, beneath)));
}

mod under {
    use super::*;

    macro_rules! a_test_a_mechanism {
        ($($test:ident: $mechanism:literal;)*) => {
            $(
                #[test]
                fn $test() {
                    let heading = concat!("under ", $mechanism);
                    check(heading, &Beneath::syscalls($mechanism));
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
}
