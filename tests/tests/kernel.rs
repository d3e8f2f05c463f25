//! The log of the kernel's reverse maps (`kernel/linux/mm/ldu.c`) as a program: what it promises
//! under many threads, and whether the program notices when a line of it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use manycore_tests::child::{self, End, Outcome};

/// How long the program runs. Each mutation is found in less.
const SECONDS: &str = "3";

/// Ten times as long, on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// The directory of the kernel's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/linux")
}

/// Compiles the test with a log, and runs it.
fn run(directory: &Path, log: &Path) -> Outcome {
    let program = directory.join("ldu_test");
    let (sources, at) = (sources(), |name: &str| sources().join(name));
    let compiled = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-pthread"])
        .arg("-I")
        .arg(at("test/shim"))
        .arg("-I")
        .arg(at("include"))
        .arg("-o")
        .args([&program, &sources.join("test/ldu_test.c"), log])
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
    let directory = tempfile::tempdir().unwrap();
    let run = run(directory.path(), &sources().join("mm/ldu.c"));
    assert!(is_success(&run), "{run:?}");
}

/// A line of the log, and what becomes of it.
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

#[test]
fn a_missing_line_is_noticed() {
    let log = fs::read_to_string(sources().join("mm/ldu.c")).unwrap();
    let mutations = mutations();
    assert!(mutations.len() >= 8);
    for Mutation { name, from, to } in mutations {
        assert_eq!(log.matches(&from).count(), 1, "{name}: a line of its own");
        let directory = tempfile::tempdir().unwrap();
        let mutant = directory.path().join("ldu.c");
        fs::write(&mutant, log.replace(&from, &to)).unwrap();
        let run = run(directory.path(), &mutant);
        assert!(!is_success(&run), "{name}: nobody has noticed: {run:?}");
    }
}
