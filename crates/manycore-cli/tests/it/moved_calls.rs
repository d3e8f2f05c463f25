//! Which system calls were moved: in every form of the profile, and in `top` while the program
//! runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{calls_library, compile, directory, failure, manycore, printed, stderr};
use serde_json::Value;

/// Sends ROUNDS messages to itself, with a lock held. Meanwhile it runs its second argument, if
/// there is one. A third argument is the number of children to fork, which send one message each.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void message(int out, int in) {
    char byte = 'x';
    pthread_mutex_lock(&lock);
    if (write(out, &byte, 1) != 1 || read(in, &byte, 1) != 1) _exit(3);
    pthread_mutex_unlock(&lock);
}
int main(int argc, char **argv) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 2;
    pid_t other = 0;
    if (argc > 2 && argv[2][0] && !(other = fork())) {
        execl(argv[2], argv[2], (char *)0);
        _exit(127);
    }
    for (int round = 0; round < atoi(argv[1]); round++) message(pair[0], pair[1]);
    for (int child = 0; argc > 3 && child < atoi(argv[3]); child++) {
        int status;
        pid_t made = fork();
        if (!made) {
            message(pair[0], pair[1]);
            _exit(0);
        }
        if (waitpid(made, &status, 0) != made || status) return 4;
    }
    int status = 0;
    if (other) waitpid(other, &status, 0);
    return status != 0;
}
"#;

const SLEEPS: &str = "#include <unistd.h>\nint main(void) { usleep(500000); return 0; }";

/// The command, with the libraries of the same build.
fn moving(arguments: &[&str]) -> Command {
    let mut command = manycore(arguments);
    command.env("MANYCORE_SYSCALLS_PRELOAD", calls_library());
    command
}

fn program(directory: &Path) -> String {
    compile(directory, "messages", PROGRAM, &["-O1", "-pthread"]).to_str().unwrap().to_owned()
}

/// The messages on standard error of a program that ends well.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

fn calls_of<'a>(calls: &'a Value, function: &str) -> &'a Value {
    let mut all = calls["functions"].as_array().unwrap().iter();
    all.find(|one| one["name"] == function).unwrap_or_else(|| panic!("no {function}: {calls}"))
}

#[test]
fn a_profile_tells_of_locks_and_of_calls_in_every_form() {
    let directory = directory();
    let program = program(directory.path());
    let [json, page] = ["prof.json", "prof.html"].map(|name| directory.path().join(name));
    let [file, page_name] = [&json, &page].map(|path| path.to_str().unwrap());
    let policy = "nic-llc:mechanism=pool";
    let arguments = [
        "profile",
        "--syscalls",
        policy,
        "--json",
        file,
        "--html",
        page_name,
        "--",
        &program,
        "5000",
    ];
    let said = said(&mut moving(&arguments));
    assert!(said.contains("\nSystem calls\npool on CPU "), "{said}");
    assert!(said.contains("write        5000 moved\n"), "{said}");
    assert!(said.contains("Locks, most waited first"), "{said}");

    let profile: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let calls = &profile["system_calls"];
    assert_eq!((&calls["schema"], &calls["mechanism"]), (&1.into(), &"pool".into()));
    for function in ["read", "write"] {
        assert_eq!(calls_of(calls, function)["moved"], 5000, "{calls}");
    }
    assert!(calls["latency_ns"]["p50"].as_u64().unwrap() > 0, "{calls}");
    let [cpus, used] = ["cpus", "cpus_used"].map(|name| calls[name].as_array().unwrap());
    assert!(!used.is_empty() && used.iter().all(|cpu| cpus.contains(cpu)), "{calls}");
    let mut locks = profile["locks"].as_array().unwrap().iter();
    assert!(locks.any(|lock| lock["acquired"] == 5000), "{}", profile["locks"]);

    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("\"system_calls\":{\"schema\":1,\"mechanism\":\"pool\""));
    let again = printed(&mut manycore(&["report", file]));
    assert!(again.contains("\nSystem calls\npool on CPU "), "{again}");
    assert!(again.contains("write        5000 moved\n"), "{again}");
    // Compared with a run without them.
    let plain = directory.path().join("plain.json");
    let mut without = profile.clone();
    without.as_object_mut().unwrap().remove("system_calls");
    fs::write(&plain, without.to_string()).unwrap();
    let plain = plain.to_str().unwrap();
    for two in [[file, plain], [plain, file]] {
        let table = printed(&mut manycore(&["diff", two[0], two[1]]));
        assert!(table.contains("lock"), "{table}");
    }
    assert!(!printed(&mut manycore(&["report", plain])).contains("System calls"));
}

#[test]
fn calls_of_children_that_have_ended_are_all_counted() {
    let directory = directory();
    let program = program(directory.path());
    let policy = "nic-llc:mechanism=pool";
    // More than are kept in files of their own.
    let arguments =
        ["run", "--syscalls", policy, "--stats", "--json", "--", &program, "10", "", "400"];
    let said = said(&mut moving(&arguments));
    let calls: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!(calls["processes"], 401, "{calls}");
    let write = calls_of(&calls, "write");
    assert_eq!(write["moved"].as_u64().unwrap() + write["in_place"].as_u64().unwrap(), 410);
    assert!(write["moved"].as_u64().unwrap() >= 390, "{calls}");
}

#[test]
fn processes_that_cannot_be_got_into_are_named() {
    let directory = directory();
    let program = program(directory.path());
    let single = compile(directory.path(), "single", SLEEPS, &["-static"]);
    let policy = "nic-llc:mechanism=thread";
    for flags in [&[][..], &["--lock", "futex"]] {
        let run = [&["run", "--syscalls", policy, "--stats"], flags].concat();
        let said = said(&mut moving(
            &[&run[..], &["--", &program, "9", single.to_str().unwrap()]].concat(),
        ));
        let named = format!("{}: it is statically linked", single.display());
        assert!(said.contains("Not seen into: process ") && said.contains(&named), "{said}");
        assert_eq!(said.matches("Not seen into").count(), 1, "{said}");
        assert!(said.contains("write        9 moved"), "{said}");
    }
    let dynamic = compile(directory.path(), "dynamic", SLEEPS, &[]);
    let run =
        ["run", "--syscalls", policy, "--stats", "--", &program, "9", dynamic.to_str().unwrap()];
    let said = said(&mut moving(&run));
    assert!(!said.contains("Not seen into"), "it has nothing to tell: {said}");
}

#[test]
fn calls_in_place_are_told_as_such() {
    let directory = directory();
    let program = program(directory.path());
    let run = ["run", "--syscalls", "nic-llc:mechanism=in-place", "--stats", "--", &program, "9"];
    let said = said(&mut moving(&run));
    assert!(said.contains("calls executed in place, by the threads"), "{said}");
    assert!(!said.contains("on CPU"), "{said}");
    assert!(said.contains("\n  write        9\n"), "{said}");
}

#[test]
fn calls_need_a_program_that_can_be_got_into() {
    let alone = ["profile", "--kernel", "--syscalls", "nic-llc"];
    let said = failure(2, &mut moving(&alone));
    assert!(said.contains("--syscalls") && said.lines().count() == 1, "{said}");
    let directory = directory();
    let single = compile(directory.path(), "single", SLEEPS, &["-static"]);
    let arguments =
        ["profile", "--kernel", "--syscalls", "nic-llc", "--", single.to_str().unwrap()];
    let said = failure(2, &mut moving(&arguments));
    assert!(said.contains("statically linked") && said.lines().count() == 1, "{said}");
}
