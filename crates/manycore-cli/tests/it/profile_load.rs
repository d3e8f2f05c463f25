//! `manycore profile` of a program with very many threads, locks and waits: all are counted, and
//! the report is there soon.

use std::time::SystemTime;

use crate::support::real::{Profiled, profiling};
use crate::support::{compile, directory};

/// Groups of threads. Each thread takes the locks of its own group, several times each, and then
/// yields the CPU, so it mostly finds a lock held. Prints the end's time to standard output.
const CONVOYS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static int groups, threads, locks, rounds;
static pthread_mutex_t *all;
static pthread_barrier_t begin;
static void *march(void *group) {
    pthread_mutex_t *mine = all + (long)group * locks;
    pthread_barrier_wait(&begin);
    for (int at = 0; at < locks * rounds; at++) {
        pthread_mutex_lock(mine + at / rounds);
        sched_yield();
        pthread_mutex_unlock(mine + at / rounds);
        sched_yield();
    }
    return NULL;
}
int main(int argc, char **argv) {
    groups = atoi(argv[1]), threads = atoi(argv[2]), locks = atoi(argv[3]), rounds = atoi(argv[4]);
    all = malloc(sizeof *all * groups * locks);
    for (int at = 0; at < groups * locks; at++) pthread_mutex_init(all + at, NULL);
    pthread_t *ids = malloc(sizeof *ids * groups * threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&begin, NULL, groups * threads);
    for (int at = 0; at < groups * threads; at++)
        if (pthread_create(ids + at, &small, march, (void *)(long)(at % groups)) != 0) return 1;
    for (int at = 0; at < groups * threads; at++) pthread_join(ids[at], NULL);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%ld.%09ld\n", now.tv_sec, now.tv_nsec);
    return 0;
}
"#;

/// Runs `groups` groups of `threads` threads; each thread takes each of its group's `locks` locks
/// `rounds` times. Returns the profile, and the bytes of its page.
fn convoys(groups: u64, threads: u64, locks: u64, rounds: u64) -> (Profiled, u64) {
    let directory = directory();
    let program = compile(directory.path(), "convoys", CONVOYS, &["-O1", "-pthread"]);
    let numbers = [groups, threads, locks, rounds].map(|number| number.to_string());
    let words = [&[program.to_str().unwrap().to_owned()][..], &numbers].concat();
    let [json, page] = ["profile.json", "profile.html"].map(|name| directory.path().join(name));
    let forms = ["--json", json.to_str().unwrap(), "--html", page.to_str().unwrap()];
    let output = profiling(&forms, &words).output().unwrap();
    let text = std::fs::read_to_string(&json).unwrap_or_else(|_| panic!("{output:?}"));
    let profiled = Profiled { output, json: serde_json::from_str(&text).unwrap() };
    assert_eq!(
        profiled.output.status.code(),
        Some(0),
        "{}",
        crate::support::stderr(&profiled.output)
    );
    let lock = &profiled.json["locks"][0];
    assert!(lock["name"].as_str().unwrap().starts_with("main+"), "{lock:#}");
    assert_eq!(lock["objects"], groups * locks);
    assert_eq!(lock["acquired"], groups * threads * locks * rounds);
    assert_eq!(lock["wait"]["count"], lock["contended"]);
    let stacks = profiled.json["stacks"].as_array().map_or(&[][..], Vec::as_slice);
    let listed: u64 = stacks.iter().map(|stack| stack["wait_ns"].as_u64().unwrap()).sum();
    let waited = lock["wait"]["total_ns"].as_u64().unwrap();
    assert!(listed.abs_diff(waited) <= 1000, "{listed} of {waited}");
    (profiled, std::fs::metadata(page).unwrap().len())
}

#[test]
fn every_thread_and_lock_of_a_crowd_is_counted() {
    let (_, page) = convoys(5, 5, 8_000, 1);
    assert!(page < 5 << 20, "{page} bytes");
}

#[test]
#[ignore = "minutes; scripts/bench runs it"]
fn ten_million_waits_are_reported_within_ten_seconds() {
    let (profiled, page) = convoys(200, 10, 500, 30);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let report = now - crate::support::stdout(&profiled.output).trim().parse::<f64>().unwrap();
    let waits = profiled.json["locks"][0]["contended"].as_u64().unwrap();
    let peak = children_peak_mib();
    let page = page as f64 / f64::from(1 << 20);
    println!(
        "{waits} waits, reported after {report:.1} s, in {peak} MiB at most; a page of {page:.1} MiB"
    );
    assert!(waits >= 10_000_000, "too few: {waits}");
    assert!(report < 10.0 && peak < 512 && page < 5.0, "{report} s, {peak} MiB, page {page} MiB");
}

/// The most memory that the command or the program has used.
fn children_peak_mib() -> i64 {
    // SAFETY: all zeros are a `rusage`, and the system writes this one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    usage.ru_maxrss / 1024
}
