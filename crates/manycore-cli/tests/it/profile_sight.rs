//! `manycore profile` finds names, reports what it cannot inspect, and does not disturb the
//! program.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::real::{compile_cxx, profile, profiling};
use crate::support::{
    compile, directory, eventually, executable, failure, long_time, runs, stderr, stdout,
};
use serde_json::json;

const LIBRARY: &str = r#"
#include <pthread.h>
static pthread_mutex_t in_library = PTHREAD_MUTEX_INITIALIZER;
void use_library(void) { pthread_mutex_lock(&in_library); pthread_mutex_unlock(&in_library); }
"#;

const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
void use_library(void);
static pthread_mutex_t in_program = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void my_mutex_lock(pthread_mutex_t *mutex) { pthread_mutex_lock(mutex); __asm__(""); }
__attribute__((noinline)) void take_from_heap(void) {
    pthread_mutex_t *mutex = calloc(1, sizeof *mutex);
    my_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}
int main(void) {
    pthread_mutex_lock(&in_program);
    pthread_mutex_unlock(&in_program);
    use_library();
    take_from_heap();
    return 0;
}
"#;

#[test]
fn locks_are_called_by_their_variables_or_their_first_use() {
    let directory = directory();
    let library = compile(directory.path(), "libsubject.so", LIBRARY, &["-shared", "-fPIC"]);
    let run_path = format!("-Wl,-rpath,{}", directory.path().display());
    for place in ["-pie", "-no-pie"] {
        let source = directory.path().join("subject.c");
        std::fs::write(&source, PROGRAM).unwrap();
        let program = directory.path().join("subject");
        let done = Command::new("cc")
            .args(["-O1", "-pthread", place, &run_path, "-o"])
            .args([&program, &source, &library])
            .status();
        assert!(done.unwrap().success());
        let names = profile(&[&program]);
        let mut names = names.names();
        names.sort_unstable();
        let [library, program_one, heap] = names[..] else { panic!("{names:?}") };
        assert_eq!((library, program_one), ("in_library (libsubject.so)", "in_program (subject)"));
        assert!(heap.starts_with("take_from_heap+0x") && heap.ends_with(" (subject)"), "{heap}");

        assert!(Command::new("strip").arg(&program).status().unwrap().success());
        let stripped = profile(&[&program]);
        let of_program =
            stripped.names().iter().filter(|name| name.starts_with("subject+0x")).count();
        assert_eq!(of_program, 2, "{:?}", stripped.names());
    }
}

const WAITED: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t *mutex;
__attribute__((noinline)) void set_up(void) {
    mutex = calloc(1, sizeof *mutex);
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}
__attribute__((noinline)) void my_mutex_lock(void) { pthread_mutex_lock(mutex); __asm__(""); }
__attribute__((noinline)) void serve(void) { my_mutex_lock(); usleep(1000); pthread_mutex_unlock(mutex); }
static void *thread(void *unused) { for (int i = 0; i < 50; i++) serve(); return unused; }
int main(void) {
    pthread_t threads[3];
    set_up();
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

#[test]
fn a_lock_on_the_heap_is_called_by_who_waits_for_it() {
    let directory = directory();
    let program = compile(directory.path(), "waited", WAITED, &["-O1", "-pthread"]);
    let profiled = profile(&[&program]);
    let lock = &profiled.json["locks"][0];
    let place = lock["waits_in"][0]["name"].as_str().unwrap();
    assert!(lock["name"].as_str().unwrap().starts_with("set_up+0x"), "{lock:#}");
    assert!(place.starts_with("serve+0x") && place.ends_with(" (waited)"), "{lock:#}");
    let said = stderr(&profiled.output);
    assert!(said.contains("\nin serve+0x") && said.contains("\n  first in set_up+0x"), "{said}");
    assert!(said.contains("threads wait for in serve+0x"), "{said}");
}

const MEMBERS: &str = r#"
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
class Queue {
    std::mutex mutex;
    std::condition_variable filled;
    int items = 0;
public:
    void __attribute__((noinline)) push() {
        { std::lock_guard<std::mutex> guard(mutex); items++; }
        filled.notify_one();
    }
    void __attribute__((noinline)) pop() {
        std::unique_lock<std::mutex> guard(mutex);
        filled.wait(guard, [this] { return items > 0; });
        items--;
    }
};
static Queue global;
int main() {
    auto heap = std::make_unique<Queue>();
    std::thread other([&] { global.pop(); heap->pop(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    global.push();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    heap->push();
    other.join();
}
"#;

#[test]
fn members_of_classes_are_found_in_variables_and_methods() {
    let directory = directory();
    for flags in [&["-O0"][..], &["-O2"], &["-O2", "-g"]] {
        let program = compile_cxx(directory.path(), "members", MEMBERS, flags);
        let profiled = profile(&[&program]);
        let names = profiled.names();
        assert!(names.contains(&"global (members)"), "{flags:?}: {names:?}");
        assert!(names.iter().any(|name| name.starts_with("Queue::p")), "{flags:?}: {names:?}");
        let conditions = profiled.json["conditions"].as_array().unwrap();
        let named =
            |start: &str| conditions.iter().any(|c| c["name"].as_str().unwrap().starts_with(start));
        // The condition variable's own place is behind the mutex.
        assert!(named("global+0x28 (members)"), "{flags:?}: {conditions:#?}");
        assert!(named("Queue::pop()"), "{flags:?}: {conditions:#?}");
    }
}

#[test]
fn processes_without_the_library_are_named() {
    let directory = directory();
    let source = "#include <unistd.h>\nint main(void) { usleep(600000); return 0; }";
    let closed = compile(directory.path(), "closed", source, &["-static"]);
    let script = format!("{} & env -i sleep 0.6 & wait", closed.display());
    let profiled = profile(&["sh", "-c", &script]);
    let outsiders = profiled.json["not_interposed"].as_array().unwrap();
    let why = |program: &str| {
        let found = outsiders.iter().find(|o| o["program"].as_str().unwrap().ends_with(program));
        found.unwrap_or_else(|| panic!("no {program} in {outsiders:#?}"))["why"].as_str().unwrap()
    };
    assert!(why("/closed").contains("statically linked"), "{outsiders:#?}");
    assert!(why("/sleep").contains("environment"), "{outsiders:#?}");
    assert_eq!(outsiders.len(), 2, "{outsiders:#?}");
    let said = stderr(&profiled.output);
    assert!(
        said.contains("Not seen into: process") && said.contains("closed: it is statically"),
        "{said}"
    );
}

#[test]
fn the_programs_own_streams_stay_its_own() {
    let mut child =
        profiling(&[], &["sh", "-c", "read line; echo \"got $line\"; echo aside >&2; exit 9"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"input\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(9), "got input\n"));
    let said = stderr(&output);
    assert!(said.starts_with("aside\n") && said.contains("exit status 9"), "{said}");
    assert!(said.contains("used no pthread lock"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn json_on_stdout_stands_alone() {
    let output = profiling(&["--json", "-"], &["true"]).output().unwrap();
    let profile: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&profile["schema"], &profile["lock"]), (&json!(1), &json!("futex")));
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_signal_to_the_command_is_one_to_the_program() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let script = format!(
            "trap 'echo caught; exit 42' {signal}; echo ready; while :; do sleep 0.01; done"
        );
        let mut child = profiling(&["--json", "/dev/null"], &["sh", "-c", &script])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(lines.next().unwrap().unwrap(), "caught");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(42));
        assert!(stderr(&output).contains("exit status 42"), "the profile is there all the same");
    }
}

#[test]
fn nothing_is_left_behind() {
    let place = directory();
    let script = executable(place.path(), "show", "#!/bin/sh\nls -d \"$MANYCORE_STATS\"\n");
    let output = profiling(&[], &[script]).output().unwrap();
    let statistics = stdout(&output);
    assert!(statistics.contains("/manycore-"), "{statistics}");
    assert!(!std::path::Path::new(statistics.trim()).parent().unwrap().exists());
}

#[test]
fn what_a_killed_command_leaves_is_removed_by_the_next() {
    let word = long_time();
    let script = format!("echo $MANYCORE_STATS; exec sleep {word}");
    let mut killed = profiling(&[], &["sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut left = String::new();
    BufReader::new(killed.stdout.take().unwrap()).read_line(&mut left).unwrap();
    let left = std::path::Path::new(left.trim());
    profile(&["true"]);
    assert!(left.exists(), "its owner is there");
    killed.kill().unwrap();
    killed.wait().unwrap();
    profile(&["true"]);
    assert!(!left.parent().unwrap().exists());
    eventually("the program is gone", || !runs(&word));
}

#[test]
fn what_is_no_file_among_the_statistics_is_not_waited_for() {
    let script = "mkfifo $MANYCORE_STATS/1-1-0.stats && ln -s /dev/zero $MANYCORE_STATS/1-2-0.stats; sleep 0.3";
    let profiled = profile(&["sh", "-c", script]);
    assert_eq!(profiled.output.status.code(), Some(0));
    let said = stderr(&profiled.output);
    assert_eq!(said.matches("statistics of a process are lost").count(), 2, "{said}");
}

#[test]
fn what_cannot_be_profiled_is_refused() {
    let refused = |options: &[&str], command: &[&str], words: &[&str]| {
        let said = failure(2, &mut profiling(options, command));
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    };
    refused(&["--lock", "glibc"], &["true"], &["glibc", "--lock futex"]);
    refused(&["--lock", "nonesuch"], &["true"], &["nonesuch", "manycore locks"]);
    refused(&["--json", "/nonexistent/f"], &["true"], &["/nonexistent/f", "--json"]);
    refused(&["--top", "0"], &["true"], &["--top"]);
    refused(&["--sort", "size"], &["true"], &["--sort"]);
    refused(&[], &["/nonexistent/program"], &["/nonexistent/program"]);
}
