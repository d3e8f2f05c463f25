//! `manycore profile --kernel`: the kernel's locks where it permits to see them, and one clear line where it does not.

mod support;

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::real::profiling;
use support::{bare_manycore, compile, directory, stderr};

const STORM: &str = include_str!("fork_storm.c");
/// Nobody.
const NOBODY: u32 = 65534;

/// Profiles a command with the kernel's side; its output, and the JSON.
fn profiled(options: &[&str], command: &[&str]) -> (Output, Value) {
    let directory = directory();
    let file = directory.path().join("profile.json");
    let options = [&["--kernel", "--json", file.to_str().unwrap()], options].concat();
    let output = profiling(&options, command).output().unwrap();
    let json = std::fs::read_to_string(&file).unwrap();
    (output, serde_json::from_str(&json).unwrap())
}

/// Whether the kernel was watched; if not the command has said so, and the test's log has the reason.
fn was_watched(output: &Output, json: &Value) -> bool {
    if json["kernel"].is_object() {
        return true;
    }
    let said = stderr(output);
    let why = said.lines().find(|line| line.contains("the kernel is not watched"));
    let why = why.unwrap_or_else(|| panic!("neither watched nor refused: {said}"));
    // Not by a macro: those the test harness would swallow.
    io::stderr().write_all(format!("skipped in part: {why}\n").as_bytes()).unwrap();
    false
}

#[test]
fn a_commands_waits_add_up() {
    let directory = directory();
    let storm = compile(directory.path(), "storm", STORM, &["-O1"]);
    let (output, json) = profiled(&[], &[storm.to_str().unwrap(), "4", "60"]);
    assert!(output.status.success(), "{}", stderr(&output));
    if !was_watched(&output, &json) {
        return;
    }
    assert_eq!(json["kernel"]["scope"], "command");
    let number = |value: &Value| value.as_u64().unwrap();
    let locks = json["kernel_locks"].as_array().unwrap();
    let waits: u64 = locks.iter().map(|lock| number(&lock["contended"])).sum();
    let (events, dropped) = (&json["kernel"]["events"], &json["kernel"]["dropped"]);
    assert_eq!(waits, number(events) - number(dropped), "{json}");
    for lock in locks {
        assert!(number(&lock["spin_ns"]) <= number(&lock["wait"]["total_ns"]), "{lock}");
        assert!(number(&lock["contended_shared"]) <= number(&lock["contended"]), "{lock}");
        assert!(lock["objects"].as_u64().unwrap() >= 1, "{lock}");
    }
    assert!(stderr(&output).contains("Locks of the kernel, most waited for first"));
}

#[test]
fn a_static_program_has_its_kernels_side_alone() {
    let directory = directory();
    let storm = compile(directory.path(), "storm", STORM, &["-O1", "-static"]);
    let (output, json) = profiled(&["--lock", "hybrid"], &[storm.to_str().unwrap(), "2", "5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("only the kernel's side is profiled: "),
        "{}",
        stderr(&output)
    );
    assert_eq!((json["lock"].as_str(), &json["locks"]), (Some("glibc"), &Value::Array(vec![])));
    was_watched(&output, &json);
}

#[test]
fn the_system_is_watched_for_a_while() {
    let mut command = bare_manycore();
    command.args(["profile", "--kernel", "--duration", "50ms", "--json", "-"]);
    let output = command.output().unwrap();
    if output.status.code() == Some(2) {
        assert!(stderr(&output).contains("the kernel cannot be watched"), "{}", stderr(&output));
        io::stderr().write_all(format!("skipped: {}\n", stderr(&output)).as_bytes()).unwrap();
        return;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["kernel"]["scope"], &json["command"]),
        (&"system".into(), &Value::Array(vec![]))
    );
}

#[test]
fn who_may_not_is_told_what_to_grant() {
    // Of root we make nobody; another user has no rights to lose.
    let as_nobody = |command: &mut Command| {
        // SAFETY: a system call without side effects.
        if unsafe { libc::geteuid() } == 0 {
            command.uid(NOBODY).gid(NOBODY);
        }
    };
    let directory = directory();
    let place = directory.path().join("manycore");
    let built = Path::new(env!("CARGO_BIN_EXE_manycore"));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::copy(built, &place).unwrap();
    std::fs::set_permissions(directory.path(), open).unwrap();

    let mut alone = Command::new(&place);
    as_nobody(alone.args(["profile", "--kernel", "--duration", "10ms"]).current_dir("/"));
    let output = alone.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("the kernel cannot be watched") && said.contains("root"), "{said}");

    let mut beside = Command::new(&place);
    beside.args(["profile", "--kernel", "--lock", "glibc", "--", "true"]).current_dir("/");
    as_nobody(&mut beside);
    let output = beside.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the kernel is not watched"), "{}", stderr(&output));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (arguments, culprit) in [
        (&["profile"][..], "CMD"),
        (&["profile", "--system", "--", "true"], "--kernel"),
        (&["profile", "--kernel", "--pid", "1", "--", "true"], "--pid"),
        (&["profile", "--kernel", "--pid", "4000000000"], "4000000000"),
        (&["profile", "--kernel=ebpf", "--", "true"], "ebpf"),
    ] {
        let output = bare_manycore().args(arguments).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(culprit), "{said}");
    }
}
