//! The suite can fail: it notices each of these broken libraries, in the case that tests the broken
//! part.

use std::time::Duration;

use manycore_tests::cases;
use manycore_tests::preload::Beneath;

use crate::programs::{self, WORKSHOP};

/// The limit is long enough for the cases that notice a fault. A program that hangs because of its
/// fault should not delay the suite.
const LIMIT: Duration = Duration::from_secs(2);

/// Runs a program on top of `faulty.c` with one fault, and demands that a case notices.
fn notices(fault: &str, program: &str, case: &str) {
    let definition = format!("-DFAULT_{fault}");
    let script = "-Wl,--version-script=faulty.map";
    let versions = fault.contains("VERSIONS").then_some(script);
    let flags: Vec<_> = [definition.as_str()].into_iter().chain(versions).collect();
    let library = WORKSHOP.shared_library("faulty", &fault.to_lowercase(), &flags);
    let program = programs::program(program);
    let got = programs::run(&program.executable, &Beneath::glibc().library(&library), LIMIT);
    let differences = cases::differences(&program.expected, &got);
    let noticed = differences.iter().any(|difference| difference.starts_with(&format!("{case}: ")));
    assert!(noticed, "{}", cases::account(&format!("{fault} passes {case}"), &got, &differences));
}

macro_rules! faults {
    ($($test:ident: $fault:literal, $program:literal, $case:literal;)*) => {
        $(
            #[test]
            fn $test() {
                notices($fault, $program, $case);
            }
        )*
    };
}

faults! {
    trylock_succeeds: "TRYLOCK_SUCCEEDS", "mutex_kinds", "mutex.init.normal.held.trylock-elsewhere";
    timedlock_succeeds: "TIMEDLOCK_SUCCEEDS", "mutex_timed", "timedlock.normal.held.past";
    errno_changed: "ERRNO_CHANGED", "mutex_kinds", "mutex.init.normal.lock";
    type_ignored: "TYPE_IGNORED", "mutex_kinds", "mutex.init.recursive.held.unlock-elsewhere";
    shared_ignored: "SHARED_IGNORED", "mutex_attributes", "mutexattr.pshared.value-after-1";
    shared_hangs: "SHARED_IGNORED", "mutex_shared", "shared.normal.lock-after-child";
    destroy_forgotten: "NULL_AFTER_DESTROY", "mutex_kinds", "mutex.init.normal.destroyed.lock";
    signal_lost: "SIGNAL_LOST", "cond_basic", "cond.normal.woken-after-3";
    broadcast_wakes_one: "BROADCAST_WAKES_ONE", "cond_mixed", "mixed.private-mutex.private-cond.broadcast-to-2";
    signal_wakes_all: "SIGNAL_WAKES_ALL", "cond_basic", "cond.normal.exactly-one.returned";
    clock_ignored: "CLOCK_IGNORED", "cond_timed", "cond.realtime.clockwait-monotonic.before-20-s.waits";
    cancelled_without_mutex: "CANCELLED_WITHOUT_MUTEX", "cancel", "cancel.wait.errorcheck.handler-unlocks";
    readers_exclude: "READERS_EXCLUDE", "rwlock_crowd", "crowd.prefer-reader.eight-readers-at-once";
    tryrdlock_succeeds: "TRYRDLOCK_SUCCEEDS", "rwlock_basic", "rwlock.prefer-reader.private.written.tryrdlock";
    spin_trylock_succeeds: "SPIN_TRYLOCK_SUCCEEDS", "spin", "spin.private.held.trylock";
    c11_forgotten: "C11_FORGOTTEN", "c11_mutex", "mtx.plain.held.trylock-elsewhere";
    once_twice: "ONCE_TWICE", "c11_cond", "call_once.calls-after-1";
    child_inherits: "CHILD_INHERITS", "fork", "fork.quiet.child";
    standard_output: "STANDARD_OUTPUT", "spin", "using";
    descriptor_kept: "DESCRIPTOR_KEPT", "surroundings", "surroundings.first-free-descriptor";
    handler_installed: "HANDLER_INSTALLED", "surroundings", "surroundings.signal-handlers-at-start";
    old_versions_only: "OLD_VERSIONS_ONLY", "versions", "versions.mutex.old-lock.old-trylock";
}
