//! Forgotten guards: the objects that they protect stay, no others do, and later objects at the
//! same place behave like new ones.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lock_api::{Mutex, RwLock};
use manycore::collections::list::{LazyList, RcuList};
use manycore::collections::queue::TakeAll;
use manycore::lock::{self, Adaptive};
use manycore::reclaim::{Config, Domain, Qsbr};
use manycore::{ConcurrentSet, SetHandle};

use crate::live::{Live, live};

/// Runs a function on another thread, which must not wait for ever.
fn gets_on(what: &str, f: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        f();
        _ = done.send(());
    });
    let waits = is_done.recv_timeout(Duration::from_secs(60));
    assert_ne!(waits, Err(mpsc::RecvTimeoutError::Timeout), "{what} waits for what is gone");
    thread.join().unwrap();
}

/// Uses a lock as one that no thread has.
macro_rules! as_new {
    ($lock:expr, $acquire:ident, $try:ident) => {
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..10).for_each(|_| *$lock.$acquire() += 1));
            }
        });
        assert_eq!(*$lock.$try().expect("no thread has it"), 20);
    };
}

macro_rules! mutexes {
    ($($lock:ident),* $(,)?) => {$(
        #[test]
        #[allow(non_snake_case, reason = "named as the lock")]
        fn $lock() {
            gets_on(stringify!($lock), || {
                let mut place = Mutex::<lock::$lock, u64>::new(0);
                for round in 0..3 {
                    thread::scope(|s| {
                        // By a thread that ends, by this one, and by one that got the guard from
                        // another.
                        match round {
                            0 => _ = s.spawn(|| std::mem::forget(place.lock())),
                            1 => std::mem::forget(place.lock()),
                            _ => {
                                let guard = place.lock();
                                _ = s.spawn(move || std::mem::forget(guard));
                            }
                        }
                    });
                    assert!(place.try_lock().is_none(), "it is held");
                    assert!(place.try_lock_for(Duration::from_micros(10)).is_none());
                    *place.get_mut() += 1;
                    // Another lock, where that one was.
                    place = Mutex::new(0);
                    as_new!(place, lock, try_lock);
                    *place.get_mut() = 0;
                }
                // Other threads release the lock than those that have acquired it, after the latter
                // have ended.
                let place: &'static _ = Box::leak(Box::new(place));
                for _ in 0..20 {
                    let guard = thread::spawn(|| place.lock()).join().unwrap();
                    thread::spawn(|| drop(guard)).join().unwrap();
                }
                as_new!(place, lock, try_lock);
            });
        }
    )*};
}

mod mutex {
    use super::*;
    manycore::for_each_lock!(mutexes);
}

macro_rules! rw_locks {
    ($($lock:ident),* $(,)?) => {$(
        #[test]
        #[allow(non_snake_case, reason = "named as the lock")]
        fn $lock() {
            gets_on(stringify!($lock), || {
                let mut place = RwLock::<lock::$lock, u64>::new(0);
                for round in 0..6 {
                    thread::scope(|s| {
                        let forgets = || match round % 3 {
                            0 => std::mem::forget(place.write()),
                            1 => std::mem::forget(place.read()),
                            _ => std::mem::forget((place.read(), place.read())),
                        };
                        if round < 3 { _ = s.spawn(forgets) } else { forgets() }
                    });
                    assert!(place.try_write().is_none(), "it is held");
                    assert_eq!(place.try_read().is_none(), round % 3 == 0);
                    *place.get_mut() += 1;
                    place = RwLock::new(0);
                    // Reads first: a reader's place may be that of the forgotten one.
                    assert_eq!(*place.read(), 0);
                    as_new!(place, write, try_write);
                    assert_eq!(*place.read(), 20);
                    *place.get_mut() = 0;
                    as_new!(place, write, try_write);
                }
            });
        }
    )*};
}

mod rw_lock {
    use super::*;
    manycore::for_each_rw_lock!(rw_locks);
}

/// A guard of a thread that reports quiescent states protects until the next report, and no longer.
#[test]
fn of_a_thread_that_is_online() {
    let domain = Domain::new(Config::default());
    let mut qsbr = domain.register_qsbr();
    let mut other = domain.register();
    std::mem::forget(qsbr.pin());
    other.pin().defer(|| ());
    other.collect_now();
    assert!(domain.held_bytes() > 0);
    qsbr.quiescent();
    qsbr.synchronize();
    qsbr.offline(|| other.synchronize());
    assert_eq!(domain.held_bytes(), 0);
    std::mem::forget(qsbr.pin());
    drop(qsbr);
    other.pin().defer(|| ());
    other.synchronize();
    assert_eq!(domain.held_bytes(), 0, "no thread waits for a handle that has ended");
}

/// Handles that count their sections: a forgotten guard keeps its section open, so other threads'
/// garbage stays; it is counted.
#[test]
fn of_a_thread_that_counts() {
    fn forgets<S: ConcurrentSet<u64>>(set: &S) {
        let mut kept = set.handle();
        for key in 0..crate::ROUNDS {
            let mut handle = set.handle();
            assert!(handle.insert(key) && kept.contains(&key));
            assert!(key == 0 || kept.remove(&(key - 1)));
            if key % 10 == 0 {
                std::mem::forget(handle);
            }
        }
    }
    forgets(&RcuList::<u64, (), Adaptive, Qsbr>::default());
    forgets(&LazyList::<u64, Adaptive, Qsbr>::default());
}

/// Values that were removed and forgotten are lost, and no others.
#[test]
fn of_what_was_taken() {
    let leaked = live(|| {
        let all = TakeAll::<Live>::default();
        (0..5).for_each(|n| all.push(Live::new(n)));
        let mut taken = all.take();
        assert_eq!(taken.next().map(|live| *live.number), Some(0));
        std::mem::forget(taken);
        all.push(Live::new(7));
        assert_eq!(all.take().map(|live| *live.number).collect::<Vec<_>>(), [7]);
    });
    assert_eq!(leaked, 4);
}
