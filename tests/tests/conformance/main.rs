//! The pthread and C11 interface, with and without the preload library: the same results, case by
//! case.
//!
//! `cargo test -p manycore-tests --test conformance --release`; a lock's name, as in
//! `under_every_lock::Futex`, chooses one lock.

mod allocators;
mod faults;
mod first_calls;
mod lookups;
mod places;
mod programs;

use std::collections::HashSet;
use std::io::Write;

use manycore_tests::preload::Beneath;
use manycore_tests::{cases, child};

use programs::{Program, SUITE};

/// The product promises at least this many distinct cases.
const CASES_MIN: usize = 300;

#[test]
fn the_cases_hold_above_glibc() {
    let accounts = SUITE.iter().filter_map(|program| {
        let defects = cases::defects(&program.expected);
        (!defects.is_empty()).then(|| cases::account(program.name, &program.expected, &defects))
    });
    programs::report(accounts);
    let names: Vec<_> = SUITE
        .iter()
        .flat_map(|program| cases::parse(&program.expected.stdout))
        .map(|(name, _)| name)
        .collect();
    let distinct: HashSet<_> = names.iter().collect();
    assert_eq!(names.len(), distinct.len(), "two programs have a case of the same name");
    assert!(distinct.len() >= CASES_MIN, "{} cases of at least {CASES_MIN}", distinct.len());
    // Written directly, because the harness shows only the output of failing tests.
    _ = writeln!(std::io::stderr(), "{} cases in {} programs", distinct.len(), SUITE.len());
}

/// The same results beneath something, of these programs.
#[track_caller]
fn check<'a>(
    programs: impl Iterator<Item = &'a Program> + Clone + Send,
    heading: &str,
    beneath: &Beneath,
) {
    programs::report(child::two_at_a_time(programs, |program| program.check(heading, beneath)));
}

/// Two runs above glibc agree: so a difference is not a matter of chance.
#[test]
fn glibc_against_itself() {
    check(SUITE.iter(), "above glibc again", &Beneath::glibc());
}

#[test]
#[ignore = "takes minutes: for authors who change a case"]
fn glibc_against_itself_twenty_times() {
    for _ in 0..20 {
        glibc_against_itself();
    }
}

/// A test a lock, named as the lock's type.
#[allow(non_snake_case, reason = "named as the locks are")]
mod under_every_lock {
    use manycore::LockInfo;
    use manycore::lock::{self, PlainLock};

    use super::*;

    /// The locks under which the programs run that take too long to be run under every lock.
    const HEAVY: &[&str] = &["futex", "adaptive", "mcs"];

    /// Locks that yield as published, by `sched_yield`, for which the filter of `sandbox` kills the
    /// process.
    const YIELDING: &[&str] = &["parking-lot"];

    /// Repetitions, in percent, under locks whose waiters keep their CPUs: with more threads than
    /// CPUs a hand-over may take a time slice.
    const SPINNING_SCALE: &str = "10";

    fn check_under(lock: &LockInfo) {
        let mut beneath = Beneath::lock(lock.name);
        if !lock.blocks {
            beneath = beneath.variable("CASE_SCALE", SPINNING_SCALE);
        }
        let programs = SUITE.iter().filter(|p| {
            let is_allowed = p.name != "sandbox" || !YIELDING.contains(&lock.name);
            is_allowed && (!p.is_heavy || HEAVY.contains(&lock.name))
        });
        check(programs, &format!("under {}", lock.name), &beneath);
    }

    macro_rules! a_test_a_lock {
        ($($lock:ident),* $(,)?) => {
            $(
                #[test]
                fn $lock() {
                    check_under(&<lock::$lock as PlainLock>::INFO);
                }
            )*
        };
    }
    manycore::for_each_inline_lock!(a_test_a_lock);
}
