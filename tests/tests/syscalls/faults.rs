//! The suite can fail: it notices each of these broken libraries, in the case that tests the broken
//! part.

use std::time::Duration;

use manycore_tests::preload::Beneath;
use manycore_tests::{cases, child};

use crate::programs::{self, WORKSHOP};

/// The limit is long enough for a case that notices a fault. A case that hangs because of its fault
/// should not delay the suite.
const LIMIT: Duration = Duration::from_secs(3);

/// Runs a case, `PROGRAM.CASE`, on top of `faulty.c` with one fault, and demands that a result
/// differs.
fn notices(fault: &str, program: &str, case: &str, result: &str) {
    let definition = format!("-DFAULT_{fault}");
    let library = WORKSHOP.shared_library("faulty", &fault.to_lowercase(), &[&definition]);
    let command = || {
        let mut command = programs::program(program).executable.command();
        command.arg(case);
        command
    };
    let run = |beneath: &Beneath| child::run(beneath.put(&mut command()), "", LIMIT);
    let (expected, got) = (run(&Beneath::glibc()), run(&Beneath::glibc().library(&library)));
    assert_eq!(cases::defects(&expected), [""; 0]);
    let differences = cases::differences(&expected, &got);
    let noticed = differences.iter().any(|line| line.contains(&format!(".{case}.{result}: ")));
    assert!(noticed, "{}", cases::account(&format!("{fault} passes {case}"), &got, &differences));
}

macro_rules! faults {
    ($($test:ident: $fault:literal, $program:literal, $case:literal, $result:literal;)*) => {
        $(
            #[test]
            fn $test() {
                notices($fault, $program, $case, $result);
            }
        )*
    };
}

faults! {
    errno_changed: "ERRNO_CHANGED", "transfers", "tcp", "send.recv";
    one_at_a_time: "ONE_AT_A_TIME", "duplex", "recv_and_send", "recv";
    never_restarted: "NEVER_RESTARTED", "signals", "restarts_the_call", "recv";
    pipe_signal_lost: "PIPE_SIGNAL_LOST", "signals", "pipe_kills", "send";
    cloexec_lost: "CLOEXEC_LOST", "nonblocking", "listening", "accept4.cloexec";
    cancelled_later: "CANCELLED_LATER", "cancelled", "while_waiting", "recv.cleaned";
    stale_number: "STALE_NUMBER", "numbers", "reused_after_raw_close", "recv";
    timeout_ignored: "TIMEOUT_IGNORED", "timeouts", "receive", "recv";
    descriptor_kept: "DESCRIPTOR_KEPT", "numbers", "lowest_first", "socket";
}
