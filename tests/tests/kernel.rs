//! The log of the kernel's reverse maps (`kernel/linux/mm/ldu.c`) as a program. The tests check its
//! promises under many threads, and check that the program notices when a line of the log is
//! missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use manycore_tests::child::{self, End, Outcome};

/// How long the program runs. It finds each mutation in less time.
const SECONDS: &str = "3";

/// Ten times as long, on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// The directory of the kernel's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/linux")
}

/// The parts of the log.
const PARTS: [&str; 3] = ["ldu.c", "ldu_work.c", "ldu_verify.c"];

/// Compiles the test with a log, whose parts are in a directory, and runs it.
///
/// With the kernel's own check (`CONFIG_LDU_RMAP_VERIFY`), or without it: the check takes locks of
/// its own, which make other errors rarer.
fn run(room: &Path, log: &Path, is_verified: bool) -> Outcome {
    let program = room.join("ldu_test");
    let at = |name: &str| sources().join(name);
    let parts = PARTS.map(|part| log.join(part));
    let (define, parts) = match is_verified {
        true => ("-DCONFIG_LDU_RMAP_VERIFY", &parts[..]),
        false => ("-UCONFIG_LDU_RMAP_VERIFY", &parts[..2]),
    };
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-pthread"])
        .arg(define)
        .args(["test/shim", "include", "mm"].map(|part| format!("-I{}", at(part).display())))
        .arg("-o")
        .args([&program, &at("test/ldu_test.c")])
        .args(parts)
        .output()
        .expect("a C compiler: apt-get install gcc");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    child::run(Command::new(program).arg(SECONDS), "", LIMIT)
}

fn is_success(run: &Outcome) -> bool {
    matches!(run.end, End::Exited(status) if status.success())
}

#[test]
fn updates_keep_their_promises() {
    for is_verified in [false, true] {
        let room = tempfile::tempdir().unwrap();
        let run = run(room.path(), &sources().join("mm"), is_verified);
        assert!(is_success(&run), "{run:?}");
    }
}

/// A line of the log, and its replacement.
struct Mutation {
    name: String,
    from: String,
    to: String,
}

fn mutations() -> Vec<Mutation> {
    let text = fs::read_to_string(sources().join("test/mutations")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [name, from, to] => Mutation { name: name.into(), from: from.into(), to: to.into() },
            _ => panic!("a mutation has three parts, with tabs between: {line}"),
        })
        .collect()
}

/// Writes a log that has one mutation, and runs the test with it.
fn run_mutated(mutation: &Mutation, is_verified: bool) -> Outcome {
    let room = tempfile::tempdir().unwrap();
    let mut places = 0;
    for part in PARTS {
        let text = fs::read_to_string(sources().join("mm").join(part)).unwrap();
        places += text.matches(&mutation.from).count();
        fs::write(room.path().join(part), text.replace(&mutation.from, &mutation.to)).unwrap();
    }
    assert_eq!(places, 1, "{}: a line of its own", mutation.name);
    run(room.path(), room.path(), is_verified)
}

#[test]
fn a_missing_line_is_noticed() {
    let mutations = mutations();
    assert!(mutations.len() >= 13);
    for mutation in mutations {
        let run = run_mutated(&mutation, false);
        assert!(!is_success(&run), "{}: the tests have not noticed: {run:?}", mutation.name);
    }
}

/// The faults that the kernel's own check has to notice itself, before a thread notices them.
const VERIFIED: [&str; 3] = ["FIFO", "family", "linked"];

#[test]
fn the_kernels_own_check_notices() {
    for mutation in mutations().iter().filter(|known| VERIFIED.contains(&&*known.name)) {
        let run = run_mutated(mutation, true);
        assert!(!is_success(&run), "{}: the tests have not noticed: {run:?}", mutation.name);
        assert!(
            run.stderr.contains("ldu_verify.c"),
            "{}: others have noticed: {run:?}",
            mutation.name
        );
    }
}
