//! `manycore run`: the program's own environment, input, output and end.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::support::{
    compile, copy, directory, empty_library, eventually, failure, library, long_time, manycore,
    printed, runs, stderr, stdout,
};
use manycore_profile::profile::{FunctionCalls, Latency, MovedCalls};

/// Runs a shell script under the lock `futex`.
fn script(text: &str) -> std::process::Command {
    manycore(&["run", "--lock", "futex", "--", "sh", "-c", text])
}

#[test]
fn exit_status_is_the_programs() {
    for status in [0, 1, 2, 77, 255] {
        let done = script(&format!("exit {status}")).status().unwrap();
        assert_eq!(done.code(), Some(status));
    }
}

#[test]
fn death_by_a_signal_is_the_programs() {
    let done = script("kill -USR1 $$").status().unwrap();
    assert_eq!(done.signal(), Some(10));
}

#[test]
fn signals_reach_the_program_and_nothing_is_left() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let text = format!(
            "trap 'echo caught; exit 42' {signal}; echo ready; while :; do sleep 0.01; done"
        );
        let mut child = script(&text).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "caught");
        assert_eq!(child.wait().unwrap().code(), Some(42));
        // The end of the output: no process that could write to it is left.
        assert!(lines.next().is_none());
    }
}

#[test]
fn the_library_comes_first_and_others_stay() {
    let library = library().to_str().unwrap();
    let text = "echo \"$MANYCORE_LOCK $LD_PRELOAD\"";
    assert_eq!(printed(&mut script(text)), format!("futex {library}\n"));

    let directory = directory();
    let other = empty_library(directory.path()).with_file_name("other.so");
    std::fs::rename(other.with_file_name("libmanycore_preload.so"), &other).unwrap();
    let other = other.to_str().unwrap();
    // An entry of ours is from a `manycore run` around this one.
    let list = format!("/lib/libmanycore_preload.so {other}");
    let output = script(text).env("LD_PRELOAD", list).output().unwrap();
    assert_eq!(stdout(&output), format!("futex {library}:{other}\n"));
}

#[test]
fn the_library_is_found_beside_the_command_and_where_it_is_installed() {
    for place in ["bin", "lib/manycore"] {
        let directory = directory();
        let (bin, place) = (directory.path().join("bin"), directory.path().join(place));
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&place).unwrap();
        copy(std::path::Path::new(env!("CARGO_BIN_EXE_manycore")), &bin.join("manycore"));
        let installed = empty_library(&place);
        let mut command = std::process::Command::new(bin.join("manycore"));
        command.args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        command.env_remove("MANYCORE_PRELOAD").env_remove("LD_PRELOAD");
        assert_eq!(
            printed(&mut command),
            format!("{}\n", installed.canonicalize().unwrap().display())
        );
    }
}

#[test]
fn glibc_leaves_the_program_as_it_is() {
    let text = "echo \"[$MANYCORE_LOCK] [$LD_PRELOAD]\"";
    let mut command = manycore(&["run", "--lock", "glibc", "--", "sh", "-c", text]);
    // Not even the library is needed.
    command.env("MANYCORE_PRELOAD", "/nonexistent").env("MANYCORE_LOCK", "futex");
    assert_eq!(printed(&mut command), "[] []\n");
}

#[test]
fn arguments_and_input_arrive_as_they_are() {
    let mut command = manycore(&["run", "printf", "%s|", "a b", "", "--lock", "-x"]);
    assert_eq!(printed(&mut command), "a b||--lock|-x|");
    let mut child = script("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"through\n");
}

#[test]
fn verbose_says_what_is_run() {
    let output = manycore(&["run", "-v", "--lock", "futex", "--", "true"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("LD_PRELOAD=") && said.contains("MANYCORE_LOCK=\"futex\""), "{said}");
    assert_eq!(failure(0, &mut manycore(&["run", "true"])), "");
}

/// Takes one lock a hundred times, and ends in the way given by its argument.
const HUNDRED: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    switch (count > 1 ? arguments[1][0] : 0) {
    case 'k': raise(SIGKILL);
    case '_': _exit(5);
    default: return 0;
    }
}"#;

#[test]
fn statistics_survive_any_end_and_the_end_is_passed_on() {
    let directory = directory();
    let program = compile(directory.path(), "hundred", HUNDRED, &["-pthread"]);
    let program = program.to_str().unwrap();
    for (how, status, signal) in [("", Some(0), None), ("_", Some(5), None), ("k", None, Some(9))] {
        let arguments = ["run", "--lock", "futex", "--stats", "--", program, how];
        let output = manycore(&arguments).output().unwrap();
        assert_eq!((output.status.code(), output.status.signal()), (status, signal), "{how}");
        assert_eq!(stdout(&output), "");
        let said = stderr(&output);
        assert!(
            said.starts_with("manycore: futex: 1 process, 1 lock, 100 acquisitions; "),
            "{said}"
        );
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}

#[test]
fn signals_are_handed_on_to_a_program_with_statistics() {
    let text = "trap 'exit 42' TERM; echo ready; while :; do sleep 0.01; done";
    let arguments = ["run", "--lock", "futex", "--stats", "-q", "--", "sh", "-c", text];
    let mut child = manycore(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(42));
    assert!(lines.next().is_none(), "the program is left behind");
}

#[test]
fn killed_outright_it_asks_the_program_with_statistics_to_end() {
    let word = long_time();
    let text = format!("exec sleep {word}");
    let arguments = ["run", "--lock", "futex", "--stats", "--", "sh", "-c", &text];
    let mut child = manycore(&arguments).spawn().unwrap();
    eventually("the program runs", || runs(&word));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("the program is gone", || !runs(&word));
}

#[test]
fn there_are_no_statistics_of_glibc() {
    let said = failure(2, &mut manycore(&["run", "--stats", "--lock", "glibc", "--", "true"]));
    assert!(said.contains("no statistics") && said.lines().count() == 1, "{said}");
}

/// A run with moved system calls, and a preloaded library that does nothing.
fn elsewhere(directory: &std::path::Path, arguments: &[&str]) -> std::process::Command {
    let library = empty_library(directory);
    let calls = directory.join("libmanycore_syscalls.so");
    std::fs::rename(library, &calls).unwrap();
    let mut command = manycore(arguments);
    command.env("MANYCORE_SYSCALLS_PRELOAD", calls);
    command
}

#[test]
fn system_calls_are_the_only_change_unless_a_lock_is_named() {
    let text = "echo \"[$MANYCORE_LOCK] $MANYCORE_SYSCALLS $LD_PRELOAD\"";
    let run = ["run", "--syscalls", "per-node:mechanism=thread:files=yes:cpus=0"];
    let directory = directory();
    let calls = directory.path().join("libmanycore_syscalls.so").canonicalize();
    assert!(calls.is_err(), "made below");
    let alone = [&run[..], &["--", "sh", "-c", text]].concat();
    let printed_alone = printed(&mut elsewhere(directory.path(), &alone));
    let calls = directory.path().canonicalize().unwrap().join("libmanycore_syscalls.so");
    let settings = "thread:cpus=0:rule=own:files=yes:bypass=no";
    assert_eq!(printed_alone, format!("[] {settings} {}\n", calls.display()));

    let both = [&run[..], &["--lock", "futex", "--", "sh", "-c", text]].concat();
    let locks = library().display();
    assert_eq!(
        printed(&mut elsewhere(directory.path(), &both)),
        format!("[futex] {settings} {locks}:{}\n", calls.display())
    );
    // Nothing of a `manycore run` around this one stays.
    let mut inner = script("echo \"[$MANYCORE_SYSCALLS]$LD_PRELOAD\"");
    inner.env("MANYCORE_SYSCALLS", settings).env("LD_PRELOAD", calls);
    assert_eq!(printed(&mut inner), format!("[]{locks}\n"));
}

#[test]
fn the_choice_is_explained_without_a_program_and_before_one() {
    let alone = printed(&mut manycore(&["run", "--syscalls", "auto", "--explain"]));
    for word in
        ["System calls (auto", "Why:\n  - ", "node", "May be used: CPUs", "MANYCORE_SYSCALLS="]
    {
        assert!(alone.contains(word), "{word}: {alone}");
    }
    let directory = directory();
    let arguments = ["run", "--syscalls", "auto", "--explain", "--", "echo", "its own"];
    let output = elsewhere(directory.path(), &arguments).output().unwrap();
    assert_eq!(stdout(&output), "its own\n");
    assert!(stderr(&output).contains("System calls (auto"), "{}", stderr(&output));
}

#[test]
fn the_explanation_for_programs_is_described() {
    let json = printed(&mut manycore(&["run", "--syscalls", "auto", "--explain", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["choice"]["asked"], "auto");
    described(&json, include_str!("../../../../docs/src/json/placement.md"));
}

#[test]
fn the_account_of_calls_is_described() {
    let calls = MovedCalls {
        latency_ns: Some(Latency { p50: 1, p99: 2, p999: 3, max: 4 }),
        // Reasons are words, and not listed.
        functions: vec![FunctionCalls {
            name: "read".into(),
            moved: 5,
            ..FunctionCalls::default()
        }],
        ..MovedCalls::default()
    };
    let json = serde_json::to_value(&calls).unwrap();
    described(&json, include_str!("../../../../docs/src/json/calls.md"));
}

/// Every field of a value stands in a page.
#[track_caller]
fn described(json: &serde_json::Value, text: &str) {
    let mut missing = Vec::new();
    let mut open = vec![json];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                missing.extend(fields.keys().filter(|key| !text.contains(&format!("`{key}`"))));
                open.extend(fields.values());
            }
            serde_json::Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
