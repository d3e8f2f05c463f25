//! Mistakes: the library answers each by a status, or ends the process with a line that names the
//! mistake.

use std::os::unix::process::ExitStatusExt;

use manycore_tests::capi::{Variant, installed};
use manycore_tests::child::{self, End};

use crate::{LIMIT, program, run, succeeds};

/// Not with valgrind, which reports that the child of a fork has memory that its parent is going to
/// free.
const EXAMINED: [Variant; 4] =
    [Variant::Shared, Variant::Static, Variant::Address, Variant::Thread];

#[test]
fn every_function_answers_to_mistakes() {
    for variant in EXAMINED {
        succeeds(&program("mistakes.c"), "c11", variant);
    }
}

#[test]
fn stores_answer_to_mistakes() {
    for variant in EXAMINED {
        succeeds(&program("durable.c"), "c11", variant);
    }
}

#[test]
fn operations_run_again_after_a_crash() {
    for variant in EXAMINED {
        succeeds(&program("operations.c"), "c11", variant);
    }
}

#[test]
fn a_map_answers_to_mistakes() {
    for variant in Variant::ALL {
        succeeds(&program("maps.c"), "c11", variant);
    }
}

#[test]
fn destructors_use_what_runs_them() {
    for variant in Variant::ALL {
        succeeds(&program("destructors.c"), "c11", variant);
    }
}

#[test]
fn a_child_has_what_its_parent_held() {
    for variant in EXAMINED {
        succeeds(&program("forks.c"), "c11", variant);
    }
}

#[test]
fn mistakes_without_an_answer_end_the_process() {
    let installed = installed();
    let compiled = installed.compile(&program("fatal.cc"), "c++17", Variant::Shared);
    let no_session = "outside a session: RLU_READER_LOCK comes first";
    let unknown = "with a thread that RLU_THREAD_INIT does not know";
    for (mistake, line) in [
        ("null", format!("RLU_READER_LOCK {unknown}")),
        ("unlock", format!("RLU_READER_UNLOCK {no_session}")),
        ("outside", format!("RLU_TRY_LOCK {no_session}")),
        ("nothing", "RLU_TRY_LOCK of a null pointer".to_owned()),
        ("section", "manycore_rcu_read_unlock outside a section".to_owned()),
        ("unknown", format!("RLU_READER_LOCK {unknown}")),
    ] {
        let mut command = installed.run(&compiled, Variant::Shared);
        let outcome = child::run(command.arg(mistake), "", LIMIT);
        let aborted = matches!(outcome.end, End::Exited(s) if s.signal() == Some(6));
        assert!(aborted, "{mistake}: {}", outcome.end);
        assert_eq!(outcome.stderr, format!("manycore: {line}\n"), "{mistake}");
    }
    let mut command = installed.run(&compiled, Variant::Shared);
    let outcome = child::run(command.arg("exception"), "", LIMIT);
    let aborted = matches!(outcome.end, End::Exited(s) if s.signal() == Some(6));
    assert!(aborted, "an exception has passed through the library: {}", outcome.end);
}

#[test]
fn thread_sanitizer_sees_past_the_annotations() {
    let outcome = run(&program("race.c"), "c11", Variant::Thread);
    let failed = matches!(outcome.end, End::Exited(status) if !status.success());
    assert!(failed && outcome.stderr.contains("data race"), "{}\n{}", outcome.end, outcome.stderr);
}
