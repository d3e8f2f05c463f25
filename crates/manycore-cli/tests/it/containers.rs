//! Programs in containers: namespaces of their own for users, processes and mounts, made by
//! `unshare`, and files that are invisible outside.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{compile, directory, eventually, failure, library, manycore, printed};
use serde_json::Value;

const CONTENDED: &str = include_str!("programs/contended.c");

/// The namespaces that a usual container has for itself.
const OWN: [&str; 6] = ["--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc"];

/// The container has memory that is invisible outside, and the program's path exists only inside.
/// The process that runs the program is not the first one, which would have to reap all others.
const SET_UP: &str = "mount --make-rprivate /; mount -t tmpfs none /dev/shm
    cp \"$1\" /dev/shm/inner; shift; \"$@\"; exit $?";

fn can_contain() -> bool {
    let done = Command::new("unshare").args(OWN).arg("true").output();
    let can = done.as_ref().is_ok_and(|done| done.status.success());
    if !can {
        eprintln!("skipped: unshare {OWN:?} is not permitted here: {done:?}");
    }
    can
}

fn container(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(OWN).args(["sh", "-ec", SET_UP, "sh"]).arg(program).args(words);
    command.env("MANYCORE_PRELOAD", library()).stdin(Stdio::null());
    command
}

/// Ended together with the test, and with all of its namespace.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // By its first process, whose end is that of all others.
        for one in children(self.0.id()) {
            // SAFETY: a signal, to a process below a child that was not waited for.
            unsafe { libc::kill(one as i32, libc::SIGKILL) };
        }
        self.0.wait().unwrap();
    }
}

fn children(process: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The program's process, by its number outside, once it has statistics.
fn inner(process: u32) -> Option<u32> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    if maps.contains("/dev/shm/inner") && maps.contains(".stats") {
        return Some(process);
    }
    children(process).into_iter().find_map(inner)
}

#[test]
fn a_program_in_a_container_is_watched_from_outside() {
    if !can_contain() {
        return;
    }
    let directory = directory();
    let program = compile(directory.path(), "contended", CONTENDED, &["-O1", "-pthread"]);
    let command = env!("CARGO_BIN_EXE_manycore");
    let words = [command, "run", "--stats", "--", "/dev/shm/inner", "30"];
    let running = Running(container(&program, &words).spawn().unwrap());
    let mut found = None;
    eventually("the program", || {
        found = inner(running.0.id());
        found.is_some()
    });
    let pid = found.unwrap().to_string();
    let watched = ["top", "--pid", &pid, "--json", "-n", "2", "-d", "300ms"];
    let text = printed(&mut manycore(&watched));
    let picture: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&picture["processes"], &picture["pid"].to_string()), (&1.into(), &pid), "{text}");
    assert_eq!(picture["threads"], 5, "{text}");
    let hot = picture["locks"].as_array().unwrap().iter().find(|lock| lock["short"] == "hot_lock");
    let hot = hot.unwrap_or_else(|| panic!("names by the container's own root: {text}"));
    assert_eq!(hot["module"], "inner");
    assert!(hot["acquired"].as_u64().unwrap() > 0 && picture["cpu"]["program"].is_f64(), "{text}");
}

/// As in a container without additional rights.
#[test]
fn a_program_is_profiled_within_a_container_without_privileges() {
    if !can_contain() {
        return;
    }
    let directory = directory();
    let program = compile(directory.path(), "contended", CONTENDED, &["-O1", "-pthread"]);
    let file = directory.path().join("profile.json");
    let words = [
        "setpriv",
        "--bounding-set=-all",
        "--inh-caps=-all",
        "--no-new-privs",
        env!("CARGO_BIN_EXE_manycore"),
        "profile",
        "--json",
        file.to_str().unwrap(),
        "--",
        "/dev/shm/inner",
        "1",
    ];
    container(&program, &words).status().unwrap();
    let profile: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(profile["locks"][0]["short"], "hot_lock", "{profile:#}");
    assert_eq!(profile["processes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_cgroup_without_such_a_program_is_named() {
    let said = failure(2, &mut manycore(&["top", "--cgroup", "/no/such", "--json"]));
    assert!(said.contains("'/no/such'") && said.contains("/proc/PID/cgroup"), "{said}");
    let kernel = ["profile", "--kernel", "--cgroup", "/no/such", "--duration", "100ms"];
    let said = failure(2, &mut manycore(&kernel));
    assert!(said.contains("cgroup"), "{said}");
}
