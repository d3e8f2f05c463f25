//! `manycore profile --kernel` of processes that run already, that become other programs, and in
//! namespaces.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::watched::{MEANS, of_kind, profiled, sees_futexes};
use crate::support::{bare_manycore, compile, directory, eventually, library, skipped, stderr};
use serde_json::Value;

const OWN_FUTEX: &str = include_str!("programs/own_futex.c");

/// A process, killed with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A command's observations of a process, as JSON; `None` with a message in the test's log if the
/// kernel does not permit them.
fn seen(command: &mut Command) -> Option<(Output, Value)> {
    judged(command.output().unwrap())
}

fn judged(output: Output) -> Option<(Output, Value)> {
    if output.status.code() == Some(2) {
        let said = stderr(&output);
        assert!(said.contains("cannot be watched") && !said.contains("ulimit"), "{said}");
        skipped(said);
        return None;
    }
    assert!(output.status.success(), "{}", stderr(&output));
    let json = serde_json::from_slice(&output.stdout).unwrap();
    sees_futexes(&output, &json).then_some((output, json))
}

/// Arguments that watch a process for this long.
fn watching(means: &str, duration: &str, pid: u32) -> Vec<String> {
    let pid = pid.to_string();
    ["profile", means, "--json", "-", "--duration", duration, "--pid", &pid]
        .map(str::to_owned)
        .into()
}

#[test]
fn a_process_is_watched_without_its_children() {
    let directory = directory();
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &["-O1", "-pthread"]);
    // A new child several times in each watch.
    let script = "while :; do \"$1\" 3 60 & child=$!; sleep 0.1; kill $child; wait; done";
    for means in MEANS {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(&program);
        let shell = Running::start(&mut shell);
        let watch = watching(means, "800ms", shell.id());
        if let Some((_, json)) = seen(bare_manycore().args(watch)) {
            let none: [&Value; 0] = [];
            assert_eq!(of_kind(&json, "futex"), none, "{means}");
            assert_eq!(json["conditions"], Value::Array(Vec::new()), "{means}");
        }
    }
}

#[test]
fn who_waits_for_ever_is_seen() {
    let directory = directory();
    let program =
        compile(directory.path(), "hung", include_str!("programs/hung.c"), &["-O1", "-pthread"]);
    let hung = Running::start(Command::new(program).arg("3"));
    let tasks = format!("/proc/{}/task", hung.id());
    eventually("three threads that sleep", || {
        let tasks = fs::read_dir(&tasks).unwrap().flatten();
        let calls = tasks.filter_map(|task| fs::read_to_string(task.path().join("syscall")).ok());
        calls.filter(|call| call.starts_with("202 ")).count() == 3
    });
    for means in MEANS {
        let Some((_, json)) = seen(bare_manycore().args(watching(means, "400ms", hung.id())))
        else {
            continue;
        };
        let futexes = of_kind(&json, "futex");
        let [lock] = futexes[..] else { panic!("{json}") };
        assert_eq!((&lock["contended"], &lock["short"]), (&3.into(), &"held_word".into()));
        let share = lock["wait"]["total_ns"].as_f64().unwrap()
            / (json["kernel"]["seconds"].as_f64().unwrap() * 3e9);
        assert!((0.8..1.05).contains(&share), "{share}: {lock}");
        let limits = json["kernel"]["limits"].to_string();
        assert!(limits.contains("3 sleeps for futexes had not ended"), "{limits}");
        let finding = json["finding"].as_str().unwrap();
        assert!(finding.contains("held_word") && !finding.contains("Nobody"), "{finding}");
    }
}

#[test]
fn a_process_that_another_thread_makes_another_program_is_watched_on() {
    let directory = directory();
    let flags = ["-O1", "-pthread"];
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &flags);
    let source = include_str!("programs/exec_by_thread.c");
    let before = compile(directory.path(), "before", source, &flags);
    for means in MEANS {
        let mut command = Command::new(&before);
        let mut running =
            Running::start(command.arg(&program).args(["3", "60"]).stdin(Stdio::piped()));
        let pid = running.id();
        let mut watch = bare_manycore();
        let watch = watch.args(watching(means, "1200ms", pid)).stdout(Stdio::piped());
        let watch = watch.stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(500));
        running.0.stdin.take().unwrap().write_all(b"!").unwrap();
        let output = watch.wait_with_output().unwrap();
        if let Some((_, json)) = judged(output) {
            let futexes = of_kind(&json, "futex");
            let is_own = |lock: &&Value| lock["name"].as_str().unwrap().starts_with("own_lock");
            assert!(futexes.iter().any(is_own), "{means}: {futexes:#?}");
        }
    }
}

#[test]
fn what_a_process_was_before_keeps_its_names() {
    let directory = directory();
    // Both at the same addresses.
    let flags = ["-O1", "-pthread", "-no-pie"];
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &flags);
    let then = compile(directory.path(), "then", include_str!("programs/then.c"), &flags);
    for means in MEANS {
        let command = [&then, &program].map(|path| path.to_str().unwrap());
        let command = [&command[..], &["3", "30"]].concat();
        let (output, json) = profiled(means, &["--lock", "glibc"], &command);
        assert!(output.status.success(), "{}", stderr(&output));
        if !sees_futexes(&output, &json) {
            continue;
        }
        let futexes = of_kind(&json, "futex");
        let named = |name: &str, module: &str| {
            let is_so = |lock: &&&Value| {
                lock["name"].as_str().unwrap().starts_with(name) && lock["module"] == module
            };
            futexes.iter().find(is_so).unwrap_or_else(|| panic!("no {name}: {futexes:#?}"))
        };
        let first = named("first_wait", "then");
        // At most sixteen waits. On a busy machine a thread's time can be over before it sleeps.
        assert!(matches!(first["contended"].as_u64(), Some(12..=16)), "{first}");
        named("own_lock", "own_futex");
    }
}

#[test]
fn processes_in_a_namespace_are_those_that_are_seen_there() {
    let namespace = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command
    };
    let probe = namespace().arg("true").output();
    if !probe.as_ref().is_ok_and(|output| output.status.success()) {
        return skipped(format!("no namespace can be made here: {probe:?}"));
    }
    let directory = directory();
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &["-O1", "-pthread"]);
    for means in MEANS {
        let file = directory.path().join("profile.json");
        let mut command = namespace();
        // The first process of a namespace is not to be the command: it would have to reap all
        // others.
        command.args(["sh", "-c", "\"$@\"; exit $?", "sh", env!("CARGO_BIN_EXE_manycore")]);
        command.args(["profile", means, "--json", file.to_str().unwrap(), "--"]).arg(&program);
        let output = command.args(["3", "30"]).env("MANYCORE_PRELOAD", library()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let json = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        if !sees_futexes(&output, &json) {
            continue;
        }
        let futexes = of_kind(&json, "futex");
        let [lock] = futexes[..] else { panic!("the library's own are in here: {futexes:#?}") };
        assert!(lock["name"].as_str().unwrap().starts_with("own_lock"), "{lock}");
        assert_eq!(lock["module"], "own_futex");
    }
}

/// The command with a limit of open files that is too low for the observed program.
fn with_few_files() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_manycore")]);
    command
}

#[test]
fn a_low_limit_of_open_files_is_raised_for_the_events_alone() {
    let directory = directory();
    let program = compile(directory.path(), "own_futex", OWN_FUTEX, &["-O1", "-pthread"]);
    let many = Running::start(Command::new(program).args(["64", "30000"]));
    let tasks = format!("/proc/{}/task", many.id());
    eventually("all threads", || fs::read_dir(&tasks).unwrap().count() == 65);
    let watch = watching("--kernel=perf", "300ms", many.id());
    if let Some((_, json)) = seen(with_few_files().args(watch)) {
        let futexes = of_kind(&json, "futex");
        let [lock] = futexes[..] else { panic!("{json}") };
        let name = lock["name"].as_str().unwrap();
        assert!(name.starts_with("own_lock"), "its maps could be read: {name}");
    }
    let mut command = with_few_files();
    command.args(["profile", "--kernel=perf", "--lock", "glibc", "--", "sh", "-c", "ulimit -S -n"]);
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "64", "{}", stderr(&output));
    assert!(Path::new(&tasks).exists());
}

#[test]
fn who_may_not_have_the_buffers_is_told_so() {
    // Root without one of its rights, and with no memory of its own to pin.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"]);
    command.args(["sh", "-c", "ulimit -l 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_manycore")]);
    let output = command.args(["profile", "--kernel=perf", "--duration", "10ms"]).output().unwrap();
    let said = stderr(&output);
    // The kernel refuses something else, or with kernel.perf_event_paranoid at -1 nothing.
    if !said.contains("memory") {
        return skipped(said);
    }
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    for words in ["CAP_IPC_LOCK", "kernel.perf_event_mlock_kb"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
