//! The JSON that scripts depend on, and the sentence that a person reads.

use std::path::Path;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use crate::support::{Synthetic, profile_of, run};
use manycore_profile::analyze::assemble::{Run, assemble};
use manycore_profile::analyze::futex::FutexWaits;
use manycore_profile::profile::{Outsider, Profile};
use manycore_stats::Kind;

/// One lock with `waits` waits of `wait` ticks each, acquired `acquired` times and held for `hold`
/// ticks each.
fn one_lock(waits: usize, wait: u64, acquired: u64, hold: u64) -> Profile {
    one_lock_in(run(), waits, wait, acquired, hold)
}

fn one_lock_in(run: Run, waits: usize, wait: u64, acquired: u64, hold: u64) -> Profile {
    let directory = tempfile::tempdir().unwrap();
    let file = Synthetic::new(directory.path(), 7);
    file.module(0x1000, 0x9000, 0, Path::new("/nonexistent/server"));
    let (_, record) = file.record(Kind::Mutex, 0x2000, &[0x3000]);
    record.acquired.store(acquired, Relaxed);
    file.wait(record, &vec![wait; waits]);
    file.hold(record, &[hold; 10]);
    assemble(run, &[file.read()])
}

#[test]
fn json() {
    let directory = tempfile::tempdir().unwrap();
    let file = Synthetic::new(directory.path(), 7);
    file.module(0x1000, 0x9000, 0, Path::new("/nonexistent/server"));
    file.used(Kind::Mutex, 0x2000, &[0x3000], 4, &[1_000_000_000]);
    file.used(Kind::Cond, 0x2800, &[], 0, &[500]);
    let mut run = run();
    run.not_interposed = vec![Outsider {
        pid: 9,
        parent: 7,
        program: "busybox".into(),
        why: "it is statically linked".into(),
    }];
    let profile = assemble(run, &[file.read()]);
    insta::assert_json_snapshot!(profile);
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
}

#[test]
fn the_documented_example_is_a_profile() {
    let text = include_str!("../../schema.md");
    let example = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let documented: serde_json::Value = serde_json::from_str(example).unwrap();
    let profile: Profile = serde_json::from_str(example).unwrap();
    assert_eq!(serde_json::to_value(&profile).unwrap(), documented, "the same fields");
}

#[test]
fn unknown_fields_are_ignored() {
    let mut value = serde_json::to_value(one_lock(1, 10, 1, 1)).unwrap();
    value["later"] = 1.into();
    value["locks"][0]["later"] = 1.into();
    assert_eq!(serde_json::from_value::<Profile>(value).unwrap(), one_lock(1, 10, 1, 1));
}

#[test]
fn little_waiting_is_not_worth_a_change() {
    let profile = one_lock(10, 1000, 1_000_000, 50);
    assert!(profile.finding.starts_with("Locks are not what holds"), "{}", profile.finding);
    assert!(profile.finding.contains("10.0 us"), "{}", profile.finding);
    assert_eq!(profile.next, None);
}

#[test]
fn a_long_held_lock_is_told_from_a_dear_hand_over() {
    // Held for eight of the ten seconds, or for a tenth of one.
    let held = one_lock(500, 20_000_000, 1000, 8_000_000);
    assert!(held.finding.contains("50 % of its 1000 acquisitions"), "{}", held.finding);
    assert!(held.finding.contains("8.00 ms at a time, 80 % of the run"), "{}", held.finding);
    assert!(held.finding.ends_with("so the work done under it is the limit."), "{}", held.finding);
    let handed = one_lock(500, 20_000_000, 1000, 100_000);
    assert!(handed.finding.contains("100 us at a time, 1.0 % of the run"), "{}", handed.finding);
    assert!(handed.finding.contains("hand-over (waking"), "{}", handed.finding);
    assert_eq!(handed.next.as_deref(), Some("manycore compare -- ./server --name 'two words'"));
}

#[test]
fn a_server_is_to_be_compared_under_a_load() {
    let server = one_lock_in(Run { is_server: true, ..run() }, 500, 20_000_000, 1000, 100_000);
    let next =
        "manycore compare --ready tcp:PORT --load 'CLIENT ...' -- ./server --name 'two words'";
    assert_eq!(server.next.as_deref(), Some(next));
}

#[test]
fn a_lock_of_the_programs_own_is_told_from_one_that_was_left_in_place() {
    let finding = |lock: &str| {
        let mut run = Run { lock: lock.into(), ..run() };
        run.watched.futexes.waits = vec![FutexWaits {
            process: 7,
            word: 0x1000,
            calls: vec![0x2000],
            waits: 10,
            total_ns: 500_000_000,
            max_ns: 50_000_000,
            times: vec![(50_000_000, 10)],
            ..FutexWaits::default()
        }];
        assemble(run, &[]).finding
    };
    let (own, left) = (finding("futex"), finding("glibc"));
    assert!(own.contains("in 10 sleeps. It is the program's own"), "{own}");
    assert!(!left.contains("program's own"), "{left}");
    assert!(left.ends_with("to see whether another lock can take its place."), "{left}");
}

#[test]
fn no_lock_is_told_from_no_sight() {
    let nothing = profile_of(&[]);
    assert!(nothing.finding.contains("used no pthread lock"), "{}", nothing.finding);
    let mut run = run();
    run.not_interposed =
        vec![Outsider { pid: 9, parent: 7, program: "x".into(), why: "it is setuid".into() }];
    assert!(assemble(run, &[]).finding.contains("1 of the program's processes"));
}
