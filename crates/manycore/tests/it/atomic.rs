//! A value that is replaced under its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use manycore::reclaim::{Atomic, Config, Domain};
use manycore_history::run::unless_interpreted;

/// The same number in two fields, on the heap. The objects are counted.
struct Pair {
    numbers: Box<[u64; 2]>,
    alive: Arc<AtomicUsize>,
}

impl Pair {
    fn new(number: u64, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { numbers: Box::new([number; 2]), alive: alive.clone() }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        *self.numbers = [u64::MAX, 0];
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_see_whole_values_that_grow() {
    const UPDATES: u64 = unless_interpreted(20_000, 60);
    const WRITERS: u64 = 3;
    let alive = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new(Config::default());
    let cell = Atomic::new_in(&domain, Pair::new(0, &alive));
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let handle = domain.register();
                for _ in 0..UPDATES {
                    let guard = handle.pin();
                    let old = cell
                        .update_in(&guard, |pair| Pair::new(pair.numbers[0] + 1, &alive))
                        .numbers[0];
                    assert!(old < WRITERS * UPDATES);
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| {
                let handle = domain.register();
                let mut last = 0;
                while last < WRITERS * UPDATES {
                    let guard = handle.pin();
                    let pair = cell.load(&guard);
                    assert_eq!(pair.numbers[0], pair.numbers[1], "it was dropped");
                    assert!(pair.numbers[0] >= last, "an older value than before");
                    last = pair.numbers[0];
                    drop(guard);
                    thread::yield_now();
                }
            });
        }
    });
    drop(cell);
    drop(domain);
    assert_eq!(alive.load(Ordering::Relaxed), 0, "each value is dropped, once");
}

#[test]
fn of_one_thread() {
    let mut names = Atomic::new(String::from("first"));
    names.store(String::from("second"));
    names.update(|name| name.to_uppercase());
    assert_eq!(names.read(String::len), 6);
    names.get_mut().push('!');
    let domain = manycore::reclaim::domain();
    let handle = domain.register();
    let guard = handle.pin();
    let seen = names.load(&guard);
    assert_eq!(names.replace(String::from("third"), &guard), "SECOND!");
    let refused = names.compare_exchange(seen, String::from("fourth"), &guard);
    assert_eq!(refused.unwrap_err(), "fourth", "it was replaced meanwhile");
    let seen = names.load(&guard);
    assert_eq!(names.compare_exchange(seen, String::from("fifth"), &guard).unwrap(), "third");
    drop(guard);
    assert_eq!(names.into_inner(), "fifth");
}

#[test]
#[should_panic(expected = "a guard of another domain")]
fn a_guard_of_another_domain_is_refused() {
    let other = Domain::new(Config::default());
    let handle = other.register();
    Atomic::new(1).load(&handle.pin());
}
