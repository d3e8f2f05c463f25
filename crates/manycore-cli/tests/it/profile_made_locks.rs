//! Waits for condition variables: which of them are waits for a lock that the program has made, and
//! which are not.

use std::path::Path;
use std::process::Command;

use crate::support::real::{Profiled, profile};
use crate::support::{compile, directory, executable, skipped};
use serde_json::Value;

const PROGRAM: &str = include_str!("programs/made_locks.c");

fn of_kind<'a>(profiled: &'a Profiled, kind: &str) -> Vec<&'a Value> {
    let locks = profiled.json["locks"].as_array().unwrap();
    locks.iter().filter(|lock| lock["kind"] == kind).collect()
}

fn made(profiled: &Profiled) -> Vec<&Value> {
    of_kind(profiled, "mutex+condition")
}

fn seconds_waited(profiled: &Profiled) -> f64 {
    let cpu = &profiled.json["cpu"];
    cpu["lock_wait"].as_f64().unwrap() + cpu["lock_spin"].as_f64().unwrap()
}

fn finding(profiled: &Profiled) -> &str {
    profiled.json["finding"].as_str().unwrap()
}

#[test]
fn locks_of_a_mutex_and_a_condition_are_locks() {
    let directory = directory();
    let program = compile(directory.path(), "made", PROGRAM, &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    for what in ["lock", "bare", "tickets", "semaphore", "rwlock", "rwlock2"] {
        let profiled = profile(&[program, what]);
        assert_eq!(profiled.output.status.code(), Some(0), "{what}");
        let made = made(&profiled);
        let conditions = profiled.json["conditions"].as_array().unwrap();
        // Each ticket has a condition of its own.
        let expected = if what == "tickets" { 4 } else { 1 };
        assert_eq!((made.len(), conditions.len()), (expected, 0), "{what}: {:#}", profiled.json);
        let sum: f64 = made.iter().map(|lock| lock["wait"]["total_ns"].as_f64().unwrap()).sum();
        let waited = seconds_waited(&profiled);
        assert!(sum > 0.0 && waited >= 0.99 * sum / 1e9, "{what}: {sum} of {waited}");
        let text = finding(&profiled);
        assert!(text.contains("waiting for locks"), "{what}: {text}");
        assert!(text.contains("made of a mutex and the condition variable"), "{what}: {text}");
        assert!(profiled.json["next"].is_null(), "no other lock takes its place: {what}");
        for lock in &made {
            let name = if what == "tickets" { "turns" } else { "changed" };
            assert!(lock["name"].as_str().unwrap().starts_with(name), "{lock:#}");
            assert!(lock["contended"].as_u64().unwrap() >= 8, "{lock:#}");
            assert!(lock["hold"]["mean_ns"].as_u64().unwrap() > 100_000, "{lock:#}");
        }
    }
}

#[test]
fn who_hands_over_is_named_and_threads_and_time_have_the_waits() {
    let directory = directory();
    let program = compile(directory.path(), "made", PROGRAM, &["-O1", "-pthread"]);
    let profiled = profile(&[program.to_str().unwrap(), "lock"]);
    let [lock] = made(&profiled)[..] else { panic!("{:#}", profiled.json) };
    let total = lock["wait"]["total_ns"].as_f64().unwrap();
    let place = profiled.json["locks"].as_array().unwrap().iter().position(|one| one == lock);
    let of_lock = |list: &Value, field: &str| -> f64 {
        let all = list.as_array().unwrap().iter();
        let of = all.filter(|one| one["lock"].as_u64() == place.map(|place| place as u64));
        of.map(|one| one[field].as_f64().unwrap()).sum()
    };
    let blocking = profiled.json["blocking"].as_array().unwrap();
    let holders = blocking.iter().filter(|one| one["lock"].as_u64() == place.map(|p| p as u64));
    for one in holders {
        assert_eq!(one["waiter"][0]["function"], "enter", "{one:#}");
        assert_eq!(one["holder"][0]["function"], "leave", "{one:#}");
    }
    assert!(finding(&profiled).contains("handed over in leave"), "{}", finding(&profiled));
    let threads = profiled.json["threads"].as_array().unwrap().iter();
    let by_thread: f64 = threads.map(|one| of_lock(&one["waits"], "wait_ns")).sum();
    let intervals = profiled.json["timeline"]["intervals"].as_array().unwrap().iter();
    let over_time: f64 = intervals.map(|one| of_lock(&one["waits"], "wait_ns")).sum();
    for sum in [by_thread, over_time, of_lock(&profiled.json["stacks"], "wait_ns")] {
        assert!((sum / total - 1.0).abs() < 0.01, "{sum} of {total}");
    }
}

#[test]
fn waits_for_work_are_none() {
    let directory = directory();
    let program = compile(directory.path(), "made", PROGRAM, &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    for what in ["starved", "pool", "bounded", "single", "barrier", "timer", "replies", "jobs"] {
        let profiled = profile(&[program, what]);
        assert_eq!(profiled.output.status.code(), Some(0), "{what}");
        assert!(made(&profiled).is_empty(), "{what}: {:#}", profiled.json["locks"]);
        let conditions = profiled.json["conditions"].as_array().unwrap();
        assert!(!conditions.is_empty(), "{what}");
        assert!(!finding(&profiled).contains("condition variable"), "{what}");
    }
}

/// An interpreter whose threads compute, so that all but one of them wait for its lock.
fn interpreter(command: &str, script: &str, threads: f64) {
    let directory = directory();
    let is_there =
        Command::new(command).arg("--version").output().is_ok_and(|it| it.status.success());
    if !is_there {
        return skipped(format!("no {command}"));
    }
    let file = executable(directory.path(), "script", script);
    let profiled = profile(&[Path::new(command), &file]);
    assert_eq!(profiled.output.status.code(), Some(0));
    let made = made(&profiled);
    let most = made.iter().max_by_key(|lock| lock["wait"]["total_ns"].as_u64());
    let most = most.unwrap_or_else(|| panic!("{command}: {:#}", profiled.json["conditions"]));
    let (waited, wall) = (seconds_waited(&profiled), profiled.json["wall"].as_f64().unwrap());
    // Threads do not begin and end together.
    assert!(waited > 0.3 * (threads - 1.0) * wall, "{command}: {waited} in {wall}");
    assert!(most["wait"]["total_ns"].as_f64().unwrap() > 0.8 * 1e9 * waited, "{most:#}");
    let text = finding(&profiled);
    // Ruby's threads have a condition each.
    let is_named = ["a mutex and", "mutexes and"].iter().any(|words| text.contains(words));
    assert!(is_named && text.contains("handed over in"), "{command}: {text}");
}

#[test]
fn pythons_global_lock_is_named() {
    let script = "import threading\ndef f():\n    s = 0\n    for i in range(1500000): s += i\n\
        ts = [threading.Thread(target=f) for _ in range(4)]\n[t.start() for t in ts]\n[t.join() for t in ts]\n";
    interpreter("/usr/bin/python3", script, 4.0);
}

#[test]
fn rubys_global_lock_is_named() {
    let script =
        "4.times.map { Thread.new { s = 0; 30_000_000.times { |i| s += i } } }.each(&:join)\n";
    interpreter("/usr/bin/ruby", script, 4.0);
}
