//! The threads' operations on the log, the log's promises, and the fault that breaks each promise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::sync::atomic::Ordering::{Acquire, Release};
use loom::thread;

use super::{Fault, Log};
use crate::check;

/// A thread that does something with a log.
fn spawn(log: &Arc<Log>, work: impl FnOnce(&Log) + 'static) -> thread::JoinHandle<()> {
    let log = log.clone();
    thread::spawn(move || work(&log))
}

/// Exit beside walks: page tables are freed when no thread walks them any more.
fn exit_beside_walks(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        log.link();
        log.walk(|tree| assert!(tree.contains(&1) || fault == Fault::Drain));
        let walker = spawn(&log, Log::walk_pages);
        log.unlink();
        log.settle();
        log.free_pages();
        walker.join().unwrap();
        log.walk_pages();
    });
}

/// Fork beside walks: a later walk meets the child, after its parent.
fn fork_beside_walks(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        let walker = spawn(&log, |log| {
            let is_settled = log.is_settled.load(Acquire);
            log.walk(|tree| {
                assert!(!is_settled || tree.contains(&1), "a walk has missed an element");
                assert!(!tree.starts_with(&[2]), "a child is before its parent");
            });
        });
        log.link();
        log.settle();
        log.is_settled.store(true, Release);
        log.mark(2, 0, Some(1), true);
        log.settle();
        walker.join().unwrap();
    });
}

/// A node that is unlinked while the log is drained does not stay in the tree.
fn exit_beside_drains(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        let walker = spawn(&log, |log| log.walk(|_| ()));
        log.link();
        log.settle();
        log.unlink();
        log.settle();
        walker.join().unwrap();
        log.walk(|tree| assert!(tree.is_empty(), "an element is left in the tree"));
    });
}

/// Exit beside a section of an updater and a walk after it.
fn exit_beside_an_updater_and_a_walk(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        log.link();
        log.walk(|_| ());
        let others = spawn(&log, |log| {
            log.take(-1);
            if log.has_log() {
                log.drain();
            }
            log.update(|| ());
            log.release();
            log.walk_pages();
        });
        log.unlink();
        log.settle();
        log.free_pages();
        others.join().unwrap();
    });
}

/// Exit beside a walk and a section of an updater after it.
fn exit_beside_a_walk_and_an_updater(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        log.link();
        log.walk(|_| ());
        let others = spawn(&log, |log| {
            log.walk_pages();
            log.take(-1);
            log.update(|| ());
            log.release();
        });
        log.unlink();
        log.settle();
        log.free_pages();
        others.join().unwrap();
    });
}

/// A reader without the lock sees a linked node, while another thread drains.
fn a_look_without_the_lock(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        let walker = spawn(&log, |log| log.walk(|_| ()));
        let looker = spawn(&log, |log| {
            if log.is_settled.load(Acquire) {
                assert!(log.is_mapped(), "what is mapped looks as if it were not");
            }
        });
        log.link();
        log.settle();
        log.is_settled.store(true, Release);
        walker.join().unwrap();
        looker.join().unwrap();
    });
}

/// Exit beside a walk that drains entries of other threads, from another list.
fn exit_beside_a_walk_that_drains(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        log.link();
        log.walk(|_| ());
        log.mark(2, 1, None, true);
        let walker = spawn(&log, Log::walk_pages);
        log.unlink();
        log.settle();
        log.free_pages();
        walker.join().unwrap();
    });
}

/// Fork and exit while the log gets lists for CPUs.
fn while_lists_are_made(fault: Fault, _is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, false);
        let maker = spawn(&log, |log| {
            log.take(-1);
            log.drain();
            log.spread();
            log.release();
            log.walk_pages();
        });
        log.link();
        log.settle();
        log.mark(2, 0, Some(1), true);
        log.settle();
        log.unlink();
        log.settle();
        log.free_pages();
        maker.join().unwrap();
        log.walk(|tree| assert_eq!(tree, [2]));
    });
}

/// An element changes its key beside a walk, which drains.
fn change_beside_walks(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        let look = |log: &Log| {
            log.walk(|tree| {
                let node = log.node(1);
                // SAFETY: the lock is held, and keeps other threads away.
                let [wanted, found] = node.keys.with(|keys| unsafe { *keys });
                assert!(!tree.contains(&1) || wanted == found, "an element has an old key");
            });
        };
        let walker = spawn(&log, look);
        log.link();
        log.settle();
        log.change();
        walker.join().unwrap();
        look(&log);
    });
}

/// An element goes away in a section that leaves the log alone, beside a walk.
fn cancel_beside_walks(fault: Fault, is_spread: bool) {
    check(3, move || {
        let log = Log::new(fault, is_spread);
        let walker = spawn(&log, Log::walk_pages);
        log.link();
        log.settle();
        if !log.cancel() {
            log.unlink();
            log.settle();
        }
        log.free_pages();
        walker.join().unwrap();
        log.walk_pages();
    });
}

type Model = fn(Fault, bool);

const MODELS: [Model; 10] = [
    exit_beside_walks,
    fork_beside_walks,
    exit_beside_drains,
    exit_beside_an_updater_and_a_walk,
    exit_beside_a_walk_and_an_updater,
    a_look_without_the_lock,
    exit_beside_a_walk_that_drains,
    while_lists_are_made,
    change_beside_walks,
    cancel_beside_walks,
];

#[test]
fn keeps_its_promises() {
    MODELS.into_iter().for_each(|model| model(Fault::Nothing, false));
}

#[test]
fn keeps_its_promises_with_lists_for_cpus() {
    MODELS.into_iter().for_each(|model| model(Fault::Nothing, true));
}

/// Each fault, the model that notices it, and whether that needs lists for CPUs.
const FAULTS: [(Fault, Model, bool); 17] = [
    (Fault::SettleBarrier, exit_beside_walks, false),
    (Fault::SectionBarrier, exit_beside_walks, false),
    (Fault::Wait, exit_beside_walks, false),
    (Fault::Drain, fork_beside_walks, false),
    (Fault::LockBarrier, exit_beside_walks, false),
    (Fault::MarkAcquire, exit_beside_a_walk_and_an_updater, false),
    (Fault::MarkEnd, exit_beside_an_updater_and_a_walk, false),
    (Fault::Order, fork_beside_walks, false),
    (Fault::Redo, exit_beside_drains, false),
    (Fault::OwnerAcquire, exit_beside_drains, false),
    (Fault::Draining, a_look_without_the_lock, false),
    (Fault::PendingBarrier, a_look_without_the_lock, false),
    (Fault::DrainBarrier, exit_beside_a_walk_that_drains, true),
    (Fault::Heads, exit_beside_walks, true),
    (Fault::Family, fork_beside_walks, true),
    (Fault::Queued, change_beside_walks, false),
    (Fault::Cancel, cancel_beside_walks, false),
];

#[test]
fn needs_each_barrier_and_each_rule() {
    let missed = |(fault, model, is_spread): &(Fault, Model, bool)| {
        let found = catch_unwind(AssertUnwindSafe(|| model(*fault, *is_spread)));
        found.is_ok().then_some(*fault)
    };
    let missed: Vec<Fault> = FAULTS.iter().filter_map(missed).collect();
    assert_eq!(missed, [], "no model has noticed these");
}
