//! Checks that calls are moved, by the programs' own statistics and from outside: otherwise the
//! suite would also pass with a library that does nothing.

use std::collections::BTreeMap;
use std::io::Write;

use manycore_profile::profile::MovedCalls;
use manycore_stats::syscalls::Function;
use manycore_tests::LIMIT;
use manycore_tests::child::{self, End};
use manycore_tests::moved::Counted;
use manycore_tests::preload::Beneath;
use manycore_tests::servers::trace;

use crate::programs;

/// Functions of which no call is ever moved.
const NEVER_MOVED: &[Function] = &[];

/// By program.
pub type Calls<'a> = BTreeMap<&'a str, MovedCalls>;

/// How many calls of a function were moved in all programs.
fn moved(calls: &Calls, function: Function) -> u64 {
    let functions = calls.values().flat_map(|calls| &calls.functions);
    functions.filter(|one| one.name == function.name()).map(|one| one.moved).sum()
}

/// Each program moved calls, and each function was moved somewhere.
#[track_caller]
pub fn everything(mechanism: &str, calls: &Calls) {
    let all: u64 = calls.values().map(MovedCalls::on_sockets).sum();
    let share = calls.values().map(|calls| calls.moved).sum::<u64>() as f64 / all as f64;
    // Written directly, because the harness shows only the output of failing tests.
    _ = writeln!(std::io::stderr(), "under {mechanism}: {share:.3} of {all} calls moved");
    let idle: Vec<_> = calls.iter().filter(|(_, calls)| calls.moved == 0).collect();
    assert!(idle.is_empty(), "programs of which nothing was moved: {idle:?}");
    let other: Vec<_> = calls.iter().filter(|(_, calls)| calls.mechanism != mechanism).collect();
    assert!(other.is_empty(), "programs under something else: {other:?}");
    let functions = Function::ALL.iter().filter(|function| !NEVER_MOVED.contains(function));
    let missing: Vec<_> = functions.filter(|function| moved(calls, **function) == 0).collect();
    assert!(missing.is_empty(), "no call was moved of {missing:?}");
}

/// Calls were moved, and calls were left in place by a measurement.
#[track_caller]
pub fn some_of_both(calls: &Calls) {
    let sum = |part: fn(&MovedCalls) -> u64| calls.values().map(part).sum::<u64>();
    let (moved, bypassed) = (sum(|calls| calls.moved), sum(|calls| calls.bypassed));
    _ = writeln!(std::io::stderr(), "as measured: {moved} calls moved, {bypassed} left in place");
    assert!(moved >= 100 && bypassed >= 100, "{moved} moved, {bypassed} in place");
}

/// No program moved anything, and all of them counted.
#[track_caller]
pub fn nothing(calls: &Calls) {
    let moving: Vec<_> = calls.iter().filter(|(_, calls)| calls.moved != 0).collect();
    assert!(moving.is_empty(), "programs that moved calls in place: {moving:?}");
    // The kind of a descriptor does not matter then.
    let silent: Vec<_> = calls.iter().filter(|(_, calls)| calls.functions.is_empty()).collect();
    assert!(silent.is_empty(), "programs that counted nothing: {silent:?}");
}

/// What the library counts for one case of a program, under a mechanism.
fn counted(mechanism: &str, program: &str, case: &str) -> MovedCalls {
    let counted = Counted::new();
    let mut command = programs::program(program).executable.command();
    let beneath = counted.beneath(&Beneath::syscalls(mechanism));
    let outcome = child::run(beneath.put(command.arg(case)), "", LIMIT);
    assert!(matches!(outcome.end, End::Exited(status) if status.success()), "{outcome:?}");
    counted.calls()
}

/// If a handler interrupted the allocator, its call is made in place; later calls are moved.
#[test]
fn a_handlers_first_call_stays_in_place() {
    for mechanism in ["thread", "pool"] {
        let calls = counted(mechanism, "handlers", "first_call");
        let write = calls.functions.iter().find(|function| function.name == "write").unwrap();
        assert!((1..=2).contains(&write.in_place) && write.moved >= 199, "{mechanism}: {write:?}");
    }
}

/// Calls are not left in place because a handler has run and returned, or because a signal is
/// permanently blocked.
#[test]
fn handlers_that_have_returned_are_forgotten() {
    for mechanism in ["thread", "pool"] {
        let calls = counted(mechanism, "handlers", "handlers_that_have_returned");
        assert!(calls.moved as f64 >= 0.95 * calls.on_sockets() as f64, "{mechanism}: {calls:?}");
    }
}

/// Once a thread can change the label that its own calls have, all calls are executed in place.
#[test]
fn what_a_label_is_tied_to_stays_in_place() {
    let calls = counted("pool", "ties", "label");
    let function = |name| calls.functions.iter().find(|function| function.name == name).unwrap();
    assert_eq!(function("send").moved, 2, "{calls:?}");
    for name in ["sendto", "recvfrom"] {
        let reasons = &function(name).reasons;
        assert_eq!(reasons.get("the kernel ties something to the thread"), Some(&1), "{calls:?}");
    }
}

/// If the kernel refuses such a change, calls are still moved.
#[test]
fn a_refused_change_ties_nothing() {
    for mechanism in ["thread", "pool"] {
        let calls = counted(mechanism, "ties", "refused");
        assert!(calls.moved >= 200, "{mechanism}: {calls:?}");
    }
}

/// The calls on sockets of one case, as strace sees them: of its only thread, and of others.
fn seen(beneath: &Beneath) -> trace::Seen {
    let executable = &programs::program("transfers").executable;
    let mut command = executable.command();
    beneath.put(command.arg("tcp"));
    trace::run(&command).unwrap_or_else(|failure| panic!("{failure}"))
}

/// At least 95 in 100 of the calls that a case makes are executed by other threads.
#[track_caller]
fn others_make_them(mechanism: &str) {
    let (plain, moved) = (seen(&Beneath::glibc()), seen(&Beneath::syscalls(mechanism)));
    assert!(plain.own() >= 70 && plain.others() == 0, "strace sees too little: {plain:?}");
    let share = 1.0 - moved.own() as f64 / plain.own() as f64;
    _ = writeln!(std::io::stderr(), "a case under {mechanism}: {share:.3} moved; {moved:?}");
    assert!(share >= 0.95, "{share:.3} of the calls are moved: {plain:?}, {moved:?}");
    // For a ring, strace sees only those calls that go to the pool.
    let is_seen = mechanism == "uring" || moved.others() >= plain.own();
    assert!(is_seen, "they are made by nobody: {plain:?}, {moved:?}");
}

mod seen_from_outside {
    use super::others_make_them;

    #[test]
    fn thread() {
        others_make_them("thread");
    }

    #[test]
    fn pool() {
        others_make_them("pool");
    }

    #[test]
    fn uring() {
        others_make_them("uring");
    }

    /// The test can fail.
    #[test]
    #[should_panic(expected = "of the calls are moved")]
    fn but_not_in_place() {
        others_make_them("in-place");
    }
}
