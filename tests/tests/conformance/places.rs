//! The library in unusual positions: twice, again at run time, before and after others, missing
//! where it should be.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs};

use manycore_tests::child::{self, End};
use manycore_tests::preload::{self, Beneath};
use manycore_tests::{LIMIT, cases};

use crate::programs::{self, Program, SUITE, WORKSHOP, program};

/// The library under another name, as if it were installed twice.
static COPY: LazyLock<PathBuf> = LazyLock::new(|| {
    let copy = manycore_tests::target().join("tmp").join("libmanycore_preload_copy.so");
    let unfinished = copy.with_extension(std::process::id().to_string());
    fs::copy(preload::library(), &unfinished).expect("copy the library");
    fs::rename(&unfinished, &copy).expect("put the copy in its place");
    copy
});

fn some_programs() -> impl Iterator<Item = &'static Program> {
    let names =
        ["mutex_kinds", "rwlock_basic", "cond_basic", "c11_mutex", "fork", "early", "loading"];
    names.into_iter().map(program)
}

#[test]
fn preloaded_twice() {
    let beneath = Beneath::lock("futex").library(&COPY);
    programs::report(some_programs().filter_map(|p| p.check("with two copies", &beneath)));
}

#[test]
fn opened_again_at_run_time() {
    let again = [preload::library().as_os_str(), COPY.as_os_str()].join(":".as_ref());
    let beneath = Beneath::lock("futex").variable("CASE_AGAIN", again);
    programs::report(program("loading").check("when the library is opened again", &beneath));
}

/// A library whose constructor uses locks, before or after ours; which constructor runs first
/// depends on that.
#[test]
fn beside_a_library_that_locks_in_its_constructor() {
    let other = WORKSHOP.shared_library("preloaded", "preloaded", &[]);
    let executable = &program("early").executable;
    let expected = programs::run(executable, &Beneath::glibc().library(&other), LIMIT);
    assert_eq!(cases::defects(&expected), [""; 0]);
    let orders = [
        ("before it", Beneath::lock("futex").library_first(&other)),
        ("after it", Beneath::lock("futex").library(&other)),
    ];
    programs::report(orders.iter().filter_map(|(order, beneath)| {
        let got = programs::run(executable, beneath, LIMIT);
        let differences = cases::differences(&expected, &got);
        let heading = format!("a library that locks, preloaded {order}");
        (!differences.is_empty()).then(|| cases::account(&heading, &got, &differences))
    }));
}

/// Functions that only read or write attributes, or that glibc keeps for objects of its own.
const LEFT_TO_GLIBC: &[&str] = &[
    "pthread_mutexattr_",
    "pthread_condattr_",
    "pthread_rwlockattr_",
    "pthread_mutex_getprioceiling",
    "pthread_mutex_setprioceiling",
    "pthread_mutex_consistent",
    "call_once",
];

const TAKEN_OVER: &[&str] = &[
    "pthread_mutex_",
    "__pthread_mutex_",
    "pthread_rwlock_",
    "__pthread_rwlock_",
    "pthread_cond_",
    "pthread_spin_",
    "mtx_",
    "cnd_",
];

/// The dynamic linker reports where each reference of a program leads: to the library, for every
/// version.
#[test]
fn every_reference_is_bound_to_the_library() {
    let mut stray = Vec::new();
    let mut bound = 0;
    for name in
        ["mutex_timed", "rwlock_timed", "spin", "cond_timed", "c11_mutex", "c11_cond", "versions"]
    {
        let beneath =
            Beneath::lock("futex").variable("LD_DEBUG", "bindings").variable("LD_BIND_NOW", "1");
        let program = program(name);
        let got = program.run(&beneath);
        for (symbol, library) in
            bindings(&got.stderr, program.executable.path().to_str().unwrap_or_default())
        {
            let is_any = |list: &[&str]| list.iter().any(|prefix| symbol.starts_with(prefix));
            if is_any(TAKEN_OVER) && !is_any(LEFT_TO_GLIBC) {
                bound += 1;
                if !library.contains("manycore") {
                    stray.push(format!("{name}: {symbol} is bound to {library}"));
                }
            }
        }
    }
    assert!(bound > 80, "only {bound} references: the linker's report was not understood");
    assert!(stray.is_empty(), "half interposed:\n{}", stray.join("\n"));
}

/// `binding file PROGRAM [0] to LIBRARY [0]: normal symbol `NAME' [VERSION]`, for one program: name
/// and library.
fn bindings<'a>(report: &'a str, program: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    report.lines().filter_map(move |line| {
        let (_, rest) = line.split_once("binding file ")?;
        let (from, rest) = rest.split_once(" [0] to ")?;
        let (library, rest) = rest.split_once(" [0]: ")?;
        let symbol = rest.split_once('`')?.1.split_once('\'')?.0;
        (from == program).then_some((symbol, library))
    })
}

#[test]
fn an_unknown_lock_is_refused_in_one_line() {
    let got = program("spin").run(&Beneath::lock("no-such-lock"));
    assert!(matches!(got.end, End::Exited(status) if status.code() == Some(2)), "{got:?}");
    assert_eq!(got.stdout, "");
    assert!(got.stderr.starts_with("manycore: ") && got.stderr.contains("no-such-lock"), "{got:?}");
    assert_eq!(got.stderr.lines().count(), 1, "{got:?}");
}

/// Parameters change how long a waiter spins and how it gives up, but not the results of calls.
#[test]
fn with_parameters() {
    let locks = [
        "hybrid:give-up=yield",
        "hybrid:give-up=sleep",
        "innodb:rounds=0:delay=0",
        "innodb:rounds=3000:delay=60",
        "proportional:delay=0",
    ];
    let names = ["mutex_contended", "cond_life", "c11_mutex"];
    let pairs = locks.iter().flat_map(|lock| names.map(|name| (lock, program(name))));
    programs::report(pairs.filter_map(|(lock, program)| {
        program.check(&format!("under {lock}"), &Beneath::lock(lock))
    }));
}

/// As on machines with many CPUs, where the lock's waiters queue.
#[test]
fn with_a_queue() {
    let lock = "adaptive:few-cpus=0";
    let programs = SUITE.iter().filter(|program| !program.is_heavy);
    programs::report(child::two_at_a_time(programs, |program| {
        program.check(&format!("under {lock}"), &Beneath::lock(lock))
    }));
}

/// With statistics on, programs behave the same, and each leaves a file.
#[test]
fn with_statistics() {
    // Statistics make calls that this program's filters forbid: see the book's page on
    // interposition.
    let counted = programs::SUITE.iter().filter(|program| program.name != "sandbox");
    let accounts = counted.filter_map(|program| {
        let directory = tempfile::tempdir_in(env::temp_dir()).expect("a directory for statistics");
        let beneath = Beneath::lock("futex").variable("MANYCORE_STATS", directory.path());
        let account = program.check("with statistics", &beneath);
        let files = fs::read_dir(directory.path()).expect("the directory is still there").count();
        account.or_else(|| (files == 0).then(|| format!("{} leaves no statistics", program.name)))
    });
    programs::report(accounts);
}
