//! The wait queue: no signal is lost, none wakes two threads, and no thread touches memory that has
//! been given up.
//!
//! In the model every deadline passes at once, so `park` with a deadline always ends by a time-out
//! unless the signal was there before.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::lock::{Futex, PlainLock, WaitQueue, Waiter};

use crate::{Mortal, SOON, check};

/// Puts a waiter on the queue, for another thread to park on.
fn enqueue(queue: &WaitQueue) -> Arc<Waiter> {
    #[expect(
        clippy::arc_with_non_send_sync,
        reason = "what is shared is not moved until all are done"
    )]
    let waiter = Arc::new(Waiter::new());
    // SAFETY: every test below keeps the waiter until it was signalled or withdrawn.
    unsafe { queue.enqueue(&waiter) };
    waiter
}

/// Takes a waiter of the test's back.
fn withdraw(queue: &WaitQueue, waiter: &Waiter) -> bool {
    // SAFETY: on the queue, and no thread has withdrawn it.
    unsafe { queue.withdraw(waiter) }
}

/// A flag with a mutex and a condition variable, as programs use them.
struct Gate {
    mutex: Futex,
    opened: WaitQueue,
    open: UnsafeCell<bool>,
}

// SAFETY: the flag is only touched with the mutex held.
unsafe impl Sync for Gate {}

impl Gate {
    fn new() -> Arc<Self> {
        let gate =
            Self { mutex: Futex::new(), opened: WaitQueue::new(), open: UnsafeCell::new(false) };
        Arc::new(gate)
    }

    fn pass(&self) {
        self.mutex.acquire();
        // SAFETY: the mutex is held, and keeps other threads away.
        while !self.open.with(|o| unsafe { *o }) {
            let waiter = Waiter::new();
            // SAFETY: the waiter is here until it was signalled; the mutex is held.
            unsafe {
                self.opened.enqueue(&waiter);
                self.mutex.release();
            }
            assert!(waiter.park(None));
            // SAFETY: this thread's, and it was signalled.
            unsafe { waiter.wake_next() };
            self.mutex.acquire();
        }
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { self.mutex.release() };
    }

    fn open(&self) {
        self.mutex.acquire();
        // SAFETY: the mutex is held, and keeps other threads away.
        self.open.with_mut(|o| unsafe { *o = true });
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { self.mutex.release() };
    }
}

#[test]
fn a_signal_after_the_mutex_is_not_lost() {
    check(3, || {
        let gate = Gate::new();
        let other = gate.clone();
        let waiting = thread::spawn(move || other.pass());
        gate.open();
        gate.opened.signal();
        waiting.join().unwrap();
    });
}

#[test]
fn a_broadcast_wakes_all() {
    check(2, || {
        let gate = Gate::new();
        let waiting = [(); 2].map(|()| {
            let gate = gate.clone();
            thread::spawn(move || gate.pass())
        });
        gate.open();
        gate.opened.broadcast();
        waiting.into_iter().for_each(|w| w.join().unwrap());
    });
}

/// The second of two waiters gives up. If the broadcast came first, it waits until it is woken; the
/// queue may be freed then.
#[test]
fn one_that_leaves_in_a_row_waits_for_its_turn() {
    check(3, || {
        let queue = Mortal::new(WaitQueue::new());
        let [first, second] = [(); 2].map(|()| enqueue(&queue));
        let leaving = thread::spawn({
            let queue = queue.clone();
            move || {
                let woken = second.park(SOON) || !withdraw(&queue, &second);
                // SAFETY: this thread's, and withdrawn if it was not signalled.
                unsafe { second.wake_next() };
                woken
            }
        });
        let waiting = thread::spawn(move || {
            assert!(first.park(None));
            // SAFETY: this thread's, and it was signalled.
            unsafe { first.wake_next() };
        });
        queue.broadcast();
        queue.drain();
        queue.end();
        leaving.join().unwrap();
        waiting.join().unwrap();
    });
}

#[test]
fn a_signal_wakes_the_oldest_and_only_it() {
    check(3, || {
        let queue = WaitQueue::new();
        let waiters = [(); 2].map(|()| enqueue(&queue));
        assert!(waiters[1].asleep().is_some());
        let first = waiters[0].clone();
        let waiting = thread::spawn(move || assert!(first.park(None)));
        queue.signal();
        waiting.join().unwrap();
        assert!(withdraw(&queue, &waiters[1]));
    });
}

#[test]
fn a_signal_wakes_the_last_if_that_is_awake() {
    check(3, || {
        let queue = WaitQueue::new();
        let [first, last] = [(); 2].map(|()| enqueue(&queue));
        queue.signal();
        let waiting = thread::spawn(move || assert!(last.park(None)));
        assert!(withdraw(&queue, &first));
        waiting.join().unwrap();
    });
}

#[test]
fn a_waiter_that_leaves_does_not_take_the_signal_with_it() {
    check(3, || {
        let queue = Arc::new(WaitQueue::new());
        let [first, second] = [(); 2].map(|()| enqueue(&queue));
        let leaving = thread::spawn({
            let queue = queue.clone();
            move || !first.park(SOON) && withdraw(&queue, &first)
        });
        queue.signal();
        let left = leaving.join().unwrap();
        // A thread that left in time was not signalled, so the other was; and the other way round.
        assert_eq!(left, !withdraw(&queue, &second));
    });
}

#[test]
fn two_signals_wake_two() {
    check(3, || {
        let queue = Arc::new(WaitQueue::new());
        let waiters = [(); 2].map(|()| enqueue(&queue));
        let signalling = thread::spawn({
            let queue = queue.clone();
            move || queue.signal()
        });
        queue.signal();
        signalling.join().unwrap();
        assert!(waiters.iter().all(|w| w.park(None)));
    });
}

#[test]
fn a_signalled_waiter_may_destroy_the_queue() {
    check(3, || {
        let queue = Mortal::new(WaitQueue::new());
        let waiter = enqueue(&queue);
        let waiting = thread::spawn({
            let queue = queue.clone();
            move || {
                assert!(waiter.park(None));
                queue.end();
            }
        });
        queue.signal();
        waiting.join().unwrap();
    });
}

/// One of the waiters has not noticed that it was woken, and leaves.
#[test]
fn a_broadcaster_may_destroy_the_queue() {
    check(3, || {
        let queue = Mortal::new(WaitQueue::new());
        let [first, second] = [(); 2].map(|()| enqueue(&queue));
        let leaving = thread::spawn({
            let queue = queue.clone();
            move || {
                let left = !first.park(SOON) && withdraw(&queue, &first);
                // SAFETY: this thread's, and withdrawn if it was not signalled.
                unsafe { first.wake_next() };
                left
            }
        });
        let waiting = thread::spawn(move || assert!(second.park(None)));
        queue.broadcast();
        queue.drain();
        queue.end();
        leaving.join().unwrap();
        waiting.join().unwrap();
    });
}
