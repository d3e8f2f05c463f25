//! A condition variable with the guards of `lock_api`.

use std::thread;
use std::time::Duration;

use lock_api::{Mutex, RawMutex};
use manycore::lock::{Adaptive, Condvar, Mcs};
use manycore_history::run::unless_interpreted;

/// More threads than CPUs: some put numbers into one slot, others take them out.
fn through_a_slot<R: RawMutex + Send + Sync>() {
    const EACH: u64 = unless_interpreted(2_000, 20);
    const PAIRS: u64 = 3;
    let slot = Mutex::<R, Option<u64>>::new(None);
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let sum: u64 = thread::scope(|scope| {
        for giver in 0..PAIRS {
            let (slot, filled, emptied) = (&slot, &filled, &emptied);
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut place = slot.lock();
                    emptied.wait_while(&mut place, |place| place.is_some());
                    *place = Some(giver * EACH + number);
                    drop(place);
                    filled.notify_one();
                }
            });
        }
        let takers = (0..PAIRS).map(|_| {
            scope.spawn(|| {
                let take = |_| {
                    let mut place = slot.lock();
                    filled.wait_while(&mut place, |place| place.is_none());
                    let number = place.take().expect("it was waited for");
                    drop(place);
                    emptied.notify_one();
                    number
                };
                (0..EACH).map(take).sum::<u64>()
            })
        });
        let takers: Vec<_> = takers.collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).sum()
    });
    let all = PAIRS * EACH;
    assert_eq!(sum, all * (all - 1) / 2, "each number once");
}

#[test]
fn with_two_locks() {
    through_a_slot::<Adaptive>();
    through_a_slot::<Mcs>();
}

#[test]
fn all_are_woken() {
    let (go, changed) = (Mutex::<Adaptive, bool>::new(false), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| changed.wait_while(&mut go.lock(), |go| !*go));
        }
        *go.lock() = true;
        // Those that come later do not wait.
        changed.notify_all();
    });
}

#[test]
fn a_wait_ends_in_time() {
    let (mutex, changed) = (Mutex::<Adaptive, ()>::new(()), Condvar::new());
    let mut guard = mutex.lock();
    assert!(!changed.wait_for(&mut guard, Duration::from_millis(2)), "no thread has notified");
    assert!(mutex.try_lock().is_none(), "the mutex is held again");
    assert!(!changed.notify_one() && !changed.notify_all(), "no thread waits any more");
    thread::scope(|scope| {
        scope.spawn(|| {
            // Once the mutex is free the other waits.
            drop(mutex.lock());
            assert!(changed.notify_one());
        });
        assert!(changed.wait_for(&mut guard, Duration::from_secs(60)));
    });
}
