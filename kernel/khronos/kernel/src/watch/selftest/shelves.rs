//! Values that are taken away while others use them.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{Test, on_all_cpus};
use crate::sync::shelf::{Shelf, Users};
use crate::task::sched;

pub const TESTS: &[Test] = &[("shelf: what is used is there, and all else goes", used_and_gone)];

const SHELVES: usize = 4;
const ROUNDS: u32 = 400;

/// Counts those that there are.
struct Value {
    is_there: AtomicU32,
    count: Arc<AtomicU32>,
}

impl Value {
    fn new(count: &Arc<AtomicU32>) -> Arc<Self> {
        count.fetch_add(1, Ordering::Relaxed); // Relaxed, all here: threads are waited for
        Arc::new(Self { is_there: AtomicU32::new(1), count: count.clone() })
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.is_there.store(0, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Threads use values, also two at a time and while the CPU switches threads, and replace them by
/// others.
fn used_and_gone() {
    let count = Arc::new(AtomicU32::new(0));
    let shelves = Arc::new(([const { Shelf::new() }; SHELVES], Users::new()));
    let (of_threads, counter) = (shelves.clone(), count.clone());
    on_all_cpus(move |cpu| {
        let (shelves, users) = &*of_threads;
        let row = users.join();
        for round in 0..ROUNDS {
            let number = (cpu + round as usize) % SHELVES;
            let shelf: &Shelf<Value> = &shelves[number];
            let used = shelf.lend(row, number, users);
            if round % 3 == 0 {
                shelf.put(Some(Value::new(&counter)), number, users, |_| {});
            }
            let again = shelf.lend(row, number, users);
            if round % 7 == 0 {
                sched::give_way();
            }
            for value in [used, again].iter().flatten() {
                assert!(value.is_there.load(Ordering::Relaxed) == 1, "a value goes that is used");
            }
        }
        row.inspect(|&row| users.part(row));
    });
    let left = count.load(Ordering::Relaxed) as usize;
    assert!(left == SHELVES, "{left} values are left for {SHELVES} shelves");
    // A thread has its reference for a moment after it has announced its end.
    while Arc::strong_count(&shelves) > 1 {
        sched::give_way();
    }
    drop(shelves);
    assert!(count.load(Ordering::Relaxed) == 0, "a value outlives its shelf");
}
