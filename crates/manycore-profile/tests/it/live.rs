//! Pictures of a program that runs.

// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use crate::support::Synthetic;
use manycore_profile::analyze::live::{Live, LiveLock, Picture, Snapshot, Span, Waiter};
use manycore_profile::clock::Rate;
use manycore_stats::Kind;

/// A tick is a nanosecond.
const RATE: Rate = Rate { ticks_per_ns: 1.0, origin: 0 };
const SECOND: u64 = 1_000_000_000;

fn span(seconds: f64) -> Span {
    Span { seconds, user: 0.0, kernel: 0.0 }
}

fn between(live: &mut Live, before: &Snapshot, now: &Snapshot) -> Picture {
    live.between(&[(Some(before), now)], span(1.0), &RATE)
}

fn until_now(live: &mut Live, now: &Snapshot) -> Picture {
    live.until_now(&[now], span(10.0), &RATE)
}

fn found(picture: &Picture, address: u64) -> &LiveLock {
    let name = format!("prog+{address:#x}");
    let names = || picture.locks.iter().map(|one| &one.lock.name).collect::<Vec<_>>();
    let found = picture.locks.iter().find(|one| one.lock.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {:?}", names()))
}

/// Two locks, at 0x10 and 0x20 of the program's data.
fn program(directory: &std::path::Path) -> Synthetic {
    let file = Synthetic::new(directory, 7);
    file.module(0x1000, 0x2000, 0, "/nonexistent/prog".as_ref());
    for address in [0x1010, 0x1020] {
        let (_, record) = file.record(Kind::Mutex, address, &[]);
        record.acquired.store(1000, Relaxed);
        file.wait(record, &[50_000, 70_000]);
        file.hold(record, &[100; 40]);
    }
    file
}

#[test]
fn an_interval_has_what_happened_in_it_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    let mut live = Live::default();
    let before = file.sample(SECOND);
    let first = &file.get().records[1];
    first.acquired.fetch_add(300, Relaxed);
    file.wait(first, &[4000, 4000, 4000, 4000]);
    file.hold(first, &[1000, 1000]);
    let now = file.sample(2 * SECOND);

    let picture = between(&mut live, &before, &now);
    assert_eq!(picture.locks.len(), 1, "the other one was not used: {:?}", picture.locks);
    let lock = &found(&picture, 0x10).lock;
    assert_eq!((lock.acquired, lock.contended, lock.wait.total_ns), (300, 4, 16_000));
    assert_eq!((lock.wait.mean_ns, lock.hold.mean_ns), (Some(4000), Some(1000)));
    assert_eq!(lock.held_ns(), Some(300_000.0));
    // From the distribution: the longest wait of all was before.
    let worst = lock.wait.max_ns.unwrap();
    assert!((3200..4800).contains(&worst), "{worst}");

    let total = until_now(&mut live, &now);
    assert_eq!(total.locks.len(), 2);
    let lock = &found(&total, 0x10).lock;
    assert_eq!((lock.acquired, lock.contended, lock.wait.max_ns), (1300, 6, Some(70_000)));
    assert_eq!(found(&total, 0x10).id, found(&picture, 0x10).id);
    assert_ne!(found(&total, 0x20).id, found(&picture, 0x10).id);
}

#[test]
fn a_wait_that_is_longer_than_all_before_is_known_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    let before = file.sample(SECOND);
    file.wait(&file.get().records[1], &[123_457]);
    let picture = between(&mut Live::default(), &before, &file.sample(2 * SECOND));
    assert_eq!(found(&picture, 0x10).lock.wait.max_ns, Some(123_457));
}

#[test]
fn a_wait_under_way_counts_for_as_long_as_it_lasts_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    let mut live = Live::default();
    // It begins half a second before the first sample, and goes on.
    file.waits(0, 71, 1, SECOND / 2);
    let snapshots = [SECOND, 2 * SECOND].map(|now| file.sample(now));
    let picture = between(&mut live, &snapshots[0], &snapshots[1]);
    let lock = found(&picture, 0x10);
    assert_eq!((lock.lock.contended, lock.lock.wait.total_ns), (0, SECOND));
    assert_eq!(lock.lock.wait.mean_ns, None, "none has ended");
    assert_eq!(lock.waiting, [Waiter { pid: 7, tid: 71, ns: SECOND * 3 / 2 }]);
    let total = until_now(&mut live, &snapshots[1]);
    let lock = &found(&total, 0x10).lock;
    assert_eq!(lock.wait.total_ns, SECOND * 3 / 2 + 120_000);
    assert_eq!(lock.wait.max_ns, Some(SECOND * 3 / 2));
    assert_eq!(lock.wait.mean_ns, Some(60_000), "of the two that have ended");

    // It ends a quarter of a second later.
    file.waits(0, 71, 0, 0);
    file.wait(&file.get().records[1], &[SECOND * 7 / 4]);
    let last = file.sample(3 * SECOND);
    let picture = between(&mut live, &snapshots[1], &last);
    let lock = found(&picture, 0x10);
    assert_eq!((lock.lock.contended, lock.lock.wait.total_ns), (1, SECOND / 4));
    assert_eq!(lock.lock.wait.mean_ns, Some(SECOND * 7 / 4), "all of it, also what was before");
    assert_eq!((lock.lock.wait.max_ns, lock.waiting.len()), (Some(SECOND * 7 / 4), 0));
}

#[test]
fn a_thread_that_ends_leaves_its_counts_and_none_twice() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    let slot = file.slot(0, 1);
    slot.acquired.store(5000, Relaxed);
    let before = file.sample(SECOND);
    // The next thread that needs a slab moves them.
    slot.acquired.store(0, Relaxed);
    slot.record.store(0, Relaxed);
    file.get().records[1].acquired.fetch_add(5000, Relaxed);
    file.get().records[2].acquired.fetch_add(1, Relaxed);
    let now = file.sample(2 * SECOND);
    let mut live = Live::default();
    let picture = between(&mut live, &before, &now);
    let seen: Vec<u64> = picture.locks.iter().map(|one| one.lock.acquired).collect();
    assert_eq!(seen, [1], "nothing but the other lock's");
    assert_eq!(found(&until_now(&mut live, &now), 0x10).lock.acquired, 6000);
}

#[test]
fn a_process_that_comes_is_new_and_one_that_has_ended_waits_for_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    file.waits(0, 71, 1, SECOND / 2);
    let picture = Live::default().between(&[(None, &file.sample(SECOND))], span(1.0), &RATE);
    assert_eq!(found(&picture, 0x10).lock.acquired, 1000);
    assert_eq!(found(&picture, 0x10).waiting.len(), 1);

    let ended = Snapshot::at(file.get(), None);
    let picture = until_now(&mut Live::default(), &ended);
    let lock = found(&picture, 0x10);
    assert_eq!((lock.waiting.len(), lock.lock.wait.total_ns), (0, 120_000));
}

#[test]
fn places_are_those_of_the_interval() {
    let directory = tempfile::tempdir().unwrap();
    let file = program(directory.path());
    file.waited_at(1, &[0x1110], &[50_000, 70_000]);
    let before = file.sample(SECOND);
    file.wait(&file.get().records[1], &[4000; 3]);
    file.waited_at(1, &[0x1220], &[4000]);
    let now = file.sample(2 * SECOND);
    let mut live = Live::default();
    let places = |picture: &Picture| -> Vec<String> {
        found(picture, 0x10).lock.waits_in.iter().map(|site| site.name.clone()).collect()
    };
    assert_eq!(places(&between(&mut live, &before, &now)), ["prog+0x220"]);
    let total = until_now(&mut live, &now);
    assert_eq!(places(&total), ["prog+0x110", "prog+0x220"]);
    assert_eq!(total.stacks.len(), 2);
}
