//! Lock functions that are looked up, wrapped, watched by sanitizers, or from another glibc. All of
//! them are the library's, or the program ends with one line before `main`.

use std::path::Path;
use std::process::Command;

use manycore_tests::child::{self, End, Outcome};
use manycore_tests::preload::{self, Beneath};
use manycore_tests::toolchain::Executable;
use manycore_tests::{LIMIT, cases};

use crate::programs::{self, WORKSHOP, program};

/// How a wrapper finds the functions that it wraps.
const WAYS: [(&str, &[&str]); 3] =
    [("next", &[]), ("by_version", &["-DBY_VERSION"]), ("from_libc", &["-DFROM_LIBC"])];

const WRAPPED: [&str; 4] = ["mutex_kinds", "cond_basic", "cond_mixed", "rwlock_basic"];

/// Compares a program on top of wrapper and library with the same on top of the wrapper alone.
fn compare(
    heading: &str,
    executable: &Executable,
    alone: &Beneath,
    both: &Beneath,
) -> Option<String> {
    let expected = programs::run(executable, alone, LIMIT);
    let defects = cases::defects(&expected);
    assert!(defects.is_empty(), "{}", cases::account(heading, &expected, &defects));
    let got = programs::run(executable, both, LIMIT);
    let differences = cases::differences(&expected, &got);
    (!differences.is_empty()).then(|| cases::account(heading, &got, &differences))
}

#[test]
fn beside_a_library_that_wraps() {
    programs::report(WAYS.iter().flat_map(|(way, flags)| {
        let wrapper = WORKSHOP.shared_library("wrapper", &format!("wrapper_{way}"), flags);
        WRAPPED.iter().flat_map(move |name| {
            let executable = &program(name).executable;
            let alone = Beneath::glibc().library(&wrapper);
            let orders = [
                ("ahead", Beneath::lock("mcs").library_first(&wrapper)),
                ("behind", Beneath::lock("mcs").library(&wrapper)),
            ];
            orders
                .into_iter()
                .filter_map(move |(order, both)| {
                    let heading = format!("{name} with a wrapper {order} that looks {way}");
                    compare(&heading, executable, &alone, &both)
                })
                .collect::<Vec<_>>()
        })
    }));
}

#[test]
fn a_program_that_wraps() {
    programs::report(WAYS.iter().flat_map(|(way, flags)| {
        let flags = [&["wrapper.c"], *flags].concat();
        WRAPPED.iter().filter_map(move |name| {
            let executable = WORKSHOP.c_as(name, &format!("{name}_wraps_{way}"), &flags);
            let heading = format!("{name}, which wraps what it finds {way}");
            compare(&heading, &executable, &Beneath::glibc(), &Beneath::lock("mcs"))
        })
    }));
}

/// Checks that the program ended before `main`, with one line that has this text.
#[track_caller]
fn is_refused(got: &Outcome, text: &str) {
    assert!(matches!(got.end, End::Exited(status) if status.code() == Some(2)), "{got:?}");
    assert!(got.stderr.starts_with("manycore: ") && got.stderr.contains(text), "{got:?}");
    assert_eq!((got.stdout.as_str(), got.stderr.lines().count()), ("", 1), "{got:?}");
}

/// The check of bindings can fail.
#[test]
fn a_library_behind_libc_is_refused() {
    let behind = |ours: Beneath| ours.library_first(Path::new("libc.so.6"));
    is_refused(&program("spin").run(&behind(Beneath::lock("futex"))), "leads past this library");
    let moved = behind(Beneath::syscalls("pool"));
    is_refused(&program("spin").run(&moved), "leads past this library");
}

#[test]
fn a_namespace_with_locks_of_its_own_is_refused() {
    let executable = WORKSHOP.c("namespace", &[]);
    let run = |beneath: &Beneath| programs::run(&executable, beneath, LIMIT);
    assert_eq!(run(&Beneath::glibc()).stdout, "loaded\n");
    is_refused(&run(&Beneath::lock("futex")), "dlmopen");
    assert_eq!(run(&Beneath::syscalls("pool")).stdout, "loaded\n");
}

/// The command, with a program that was compiled with a sanitizer.
fn under_the_command(how: &[&str], program: &Executable, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(preload::command());
    command.args(how).arg("--").arg(program.path()).args(arguments);
    child::run(Beneath::glibc().put(&mut command), "", LIMIT)
}

const HOW: [&[&str]; 4] = [
    &["run", "--lock", "futex"],
    &["run", "--lock", "mcs"],
    &["profile", "--samples", "no"],
    &["run", "--syscalls", "nic-llc:mechanism=pool"],
];

#[test]
fn sanitized_programs_run_under_the_command() {
    const KINDS: [(&str, &[&str]); 4] = [
        ("thread", &["-fsanitize=thread"]),
        ("thread_static", &["-fsanitize=thread", "-static-libtsan"]),
        ("address", &["-fsanitize=address"]),
        ("address_static", &["-fsanitize=address", "-static-libasan"]),
    ];
    for (kind, flags) in KINDS {
        let program = WORKSHOP.c_as("sanitized", &format!("sanitized_{kind}"), flags);
        for how in HOW {
            let got = under_the_command(how, &program, &[]);
            assert_eq!(got.stdout, "2000 2000 2000\n", "{kind} {how:?}: {got:?}");
            assert!(matches!(got.end, End::Exited(status) if status.success()), "{kind}: {got:?}");
            if kind.starts_with("thread") {
                let got = under_the_command(how, &program, &["race"]);
                assert!(got.stderr.contains("data race"), "{kind} {how:?}: {got:?}");
            }
        }
    }
}

/// Where ThreadSanitizer cannot come first.
#[test]
fn a_sanitizer_that_would_see_no_lock_is_refused() {
    let program = WORKSHOP.c_as("sanitized", "sanitized_thread", &["-fsanitize=thread"]);
    is_refused(&programs::run(&program, &Beneath::lock("futex"), LIMIT), "ThreadSanitizer");
}
