//! Condition variables: no signal is lost.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::lock::{Futex, PlainLock, WaitQueue, Waiter};

use crate::explore;

/// How waiters are told.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    One,
    All,
    InRows,
}

/// Some threads wait until there is something for them, and another brings it, piece by piece.
fn program(waiters: u32, told: Told) -> impl Fn() {
    move || {
        let (mutex, changed, pieces) = (Futex::new(), WaitQueue::new(), Cell::new(0));
        thread::parallel(waiters + 1, |me| {
            mutex.acquire();
            if me == waiters {
                for _ in 0..waiters {
                    pieces.set(pieces.get() + 1);
                    if told == Told::One {
                        changed.signal();
                    }
                }
                match told {
                    Told::One => false,
                    Told::All => changed.broadcast(),
                    Told::InRows => changed.broadcast_in_rows(),
                };
            } else {
                while pieces.get() == 0 {
                    let waiter = Waiter::new();
                    // SAFETY: the mutex is held; the waiter lives until it has been signalled.
                    unsafe {
                        changed.enqueue(&waiter);
                        mutex.release();
                    }
                    waiter.park(None);
                    mutex.acquire();
                    // SAFETY: this thread's, and it was signalled.
                    unsafe { waiter.wake_next() };
                }
                pieces.set(pieces.get() - 1);
            }
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { mutex.release() };
        });
        assert_eq!(pieces.get(), 0);
    }
}

#[test]
fn signals_and_broadcasts() {
    explore().check(program(2, Told::One));
    explore().check(program(3, Told::One));
    explore().check(program(3, Told::All));
    explore().check(program(3, Told::InRows));
    explore().check(program(4, Told::InRows));
}
