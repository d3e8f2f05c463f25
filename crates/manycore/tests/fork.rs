//! What the child of a fork finds in queues on which threads of its parent wait, which it does not have.
#![cfg(all(target_os = "linux", not(loom), not(manycore_bare)))]
// A test is an ordinary program: the rules for algorithms are not for it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use manycore::lock::{WaitQueue, Waiter};

/// Runs `body` in a forked child, which has to end well within ten seconds.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the child goes on with its copy of this thread, and allocates nothing before it exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        // SAFETY: plain system calls.
        unsafe { libc::alarm(10) };
        manycore::sync::thread::forked();
        body();
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is written here.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child's wait status");
}

#[test]
fn a_child_finds_no_waiters() {
    static QUEUE: WaitQueue = WaitQueue::new();
    static ENQUEUED: AtomicU32 = AtomicU32::new(0);
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let waiter = Waiter::new();
                // SAFETY: the waiter lives until it was signalled.
                unsafe { QUEUE.enqueue(&waiter) };
                ENQUEUED.fetch_add(1, Ordering::Release);
                assert!(waiter.park(None));
            });
        }
        while ENQUEUED.load(Ordering::Acquire) < 2 {
            thread::sleep(Duration::from_millis(1));
        }
        in_child(|| {
            // Without the generation, the drain would wait for the parent's threads, for ever.
            QUEUE.drain();
            let waiter = Waiter::new();
            // SAFETY: the waiter lives until it was signalled.
            unsafe { QUEUE.enqueue(&waiter) };
            QUEUE.signal();
            assert!(waiter.park(None));
        });
        QUEUE.broadcast();
    });
}
