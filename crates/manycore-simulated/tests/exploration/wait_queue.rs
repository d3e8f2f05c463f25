//! Condition variables: no signal is lost.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::lock::{Futex, PlainLock, WaitQueue, Waiter};

use crate::explore;

/// Some threads wait for pieces of work, and another thread adds them, one by one.
fn program(waiters: u32, broadcast: bool) -> impl Fn() {
    move || {
        let (mutex, changed, pieces) = (Futex::new(), WaitQueue::new(), Cell::new(0));
        thread::parallel(waiters + 1, |me| {
            mutex.acquire();
            if me == waiters {
                for _ in 0..waiters {
                    pieces.set(pieces.get() + 1);
                    if !broadcast {
                        changed.signal();
                    }
                }
                if broadcast {
                    changed.broadcast();
                }
            } else {
                while pieces.get() == 0 {
                    let waiter = Waiter::new();
                    // SAFETY: the mutex is held; the waiter lives until it has been signalled.
                    unsafe {
                        changed.enqueue(&waiter);
                        mutex.release();
                    }
                    waiter.park(None);
                    // SAFETY: this thread's, and it was signalled.
                    unsafe { waiter.wake_next() };
                    mutex.acquire();
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
    explore().check(program(2, false));
    explore().check(program(3, false));
    explore().check(program(3, true));
    // More than are woken at once.
    explore().check(program(10, true));
}
