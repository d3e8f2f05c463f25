//! RLU by native threads: write-back, waits between threads, and reports of stalls.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use manycore::clock::Counter;
use manycore::rlu::{Config, Domain};
use manycore::session::{self, Conflict, Ptr, RawSession, Transaction};

fn domain(deferred: usize) -> Domain {
    Domain::new(Counter::default(), Config::default().with_deferred(deferred))
}

/// A transaction that adds one.
fn add_one<'id, S: RawSession>(
    tx: &mut Transaction<'_, 'id, S>,
    object: Ptr<'id, u32>,
) -> Result<(), Conflict> {
    *tx.try_lock(object)? += 1;
    Ok(())
}

/// Other threads write back what a thread has deferred and left behind.
#[test]
fn what_a_thread_leaves_behind_is_written_back() {
    let domain = domain(100);
    session::scope(&domain, |all| {
        let mut member = all.register();
        let object = member.create(0_u32);
        thread::scope(|s| {
            s.spawn(move || all.register().run(|tx| add_one(tx, object)));
        });
        // A record of its own, not the record of the ended thread.
        thread::scope(|s| {
            let other = s.spawn(move || {
                let _mine = all.register();
                all.register().run(|tx| add_one(tx, object));
            });
            other.join().unwrap();
        });
        assert_eq!(member.read(|now| *now.deref(object)), 2);
        // The thread that meets the copy writes it back, also if that thread does not wait between
        // its attempts.
        let mut attempts = (0..2).map(|_| member.attempt(|tx| add_one(tx, object)));
        assert_eq!((attempts.next(), attempts.next()), (Some(Err(Conflict::Full)), Some(Ok(()))));
    });
}

/// A long session keeps a writer waiting; that is reported, and the writer goes on when the session
/// has ended.
#[test]
fn a_session_that_stays_is_reported() {
    let (reported, is_over) = (Arc::new(AtomicU32::new(0)), AtomicBool::new(false));
    let told = reported.clone();
    let config =
        Config::default().with_patience(Duration::from_millis(1)).with_on_stall(move |stall| {
            assert_eq!(stall.objects, 1);
            told.store(stall.thread, Ordering::Release);
        });
    let domain = Domain::new(Counter::default(), config);
    session::scope(&domain, |all| {
        let mut member = all.register();
        let object = member.create(0_u32);
        thread::scope(|s| {
            let (reported, is_over) = (&reported, &is_over);
            let mut reader = all.register();
            let thread = reader.read(|now| {
                let seen = now.deref(object);
                s.spawn(move || {
                    all.register().run(|tx| add_one(tx, object));
                    is_over.store(true, Ordering::Release);
                });
                while reported.load(Ordering::Acquire) == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                assert!(!is_over.load(Ordering::Acquire), "a writer has not waited");
                assert_eq!(*seen, 0, "what a session reads has changed");
                manycore::sync::thread::id()
            });
            assert_eq!(reported.load(Ordering::Acquire), thread);
        });
        assert_eq!(member.read(|now| *now.deref(object)), 1);
    });
}

/// It would wait for ever.
#[test]
#[should_panic = "would wait for its own session"]
fn a_thread_does_not_wait_for_itself() {
    let domain = domain(0);
    session::scope(&domain, |all| {
        let (mut one, mut other) = (all.register(), all.register());
        let object = one.create(0_u32);
        one.read(|_now| other.run(|tx| add_one(tx, object)));
    });
}

/// If two sessions would wait for each other, one is aborted.
#[test]
fn two_threads_do_not_wait_for_each_other() {
    let domain = domain(0);
    let both_read = Barrier::new(2);
    session::scope(&domain, |all| {
        let mut member = all.register();
        let objects = [member.create(0_u32), member.create(0_u32)];
        thread::scope(|s| {
            let both_read = &both_read;
            let threads = objects.map(|object| {
                s.spawn(move || {
                    let (mut one, mut other) = (all.register(), all.register());
                    one.read(|_now| {
                        both_read.wait();
                        other.run(|tx| add_one(tx, object));
                    });
                })
            });
            for thread in threads {
                assert!(thread.join().is_err(), "a thread has not waited for its own session");
            }
        });
    });
}
