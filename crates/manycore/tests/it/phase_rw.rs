//! The order of readers and writers that wait for each other, and the effect of a deadline.

use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use manycore::lock::{PhaseRw, Preference};
use manycore::sync::{self, Deadline};

/// Starts a thread that waits for a lock, and returns when it sleeps.
fn spawn_waiter<'s>(s: &'s Scope<'s, '_>, f: impl FnOnce() + Send + 's) {
    let (sender, receiver): (Sender<u32>, _) = mpsc::channel();
    s.spawn(move || {
        sender.send(sync::thread::id()).unwrap();
        f();
    });
    let stat = format!("/proc/self/task/{}/stat", receiver.recv().unwrap());
    while !std::fs::read_to_string(&stat).unwrap().contains(") S ") {
        thread::sleep(Duration::from_millis(1));
    }
}

fn deadline_in(wait: Duration) -> Option<Deadline> {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, into `now`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let at = Duration::new(now.tv_sec as u64, now.tv_nsec as u32) + wait;
    let (seconds, nanoseconds) = (at.as_secs() as i64, at.subsec_nanos());
    Some(Deadline { wall: false, seconds, nanoseconds })
}

#[test]
fn a_waiting_writer_stops_readers_that_want_phases_and_no_others() {
    let lock = PhaseRw::new();
    lock.read(Preference::Phases);
    thread::scope(|s| {
        spawn_waiter(s, || {
            lock.write();
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_write() };
        });
        assert!(!lock.try_read(Preference::Phases));
        assert!(lock.try_read(Preference::Readers));
        // SAFETY: this thread has acquired them above and at the start, and not released them
        // since.
        unsafe {
            lock.release_read();
            lock.release_read();
        }
    });
    assert!(lock.try_read(Preference::Phases));
}

#[test]
fn readers_that_wait_go_before_the_next_writer() {
    let lock = PhaseRw::new();
    let order = Mutex::new(Vec::new());
    assert!(lock.try_write());
    thread::scope(|s| {
        spawn_waiter(s, || {
            lock.write();
            order.lock().unwrap().push("writer");
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_write() };
        });
        for _ in 0..2 {
            spawn_waiter(s, || {
                lock.read(Preference::Phases);
                order.lock().unwrap().push("reader");
                // SAFETY: this thread has acquired it above, and not released it since.
                unsafe { lock.release_read() };
            });
        }
        // SAFETY: acquired at the start of this function, and not released since.
        unsafe { lock.release_write() };
    });
    assert_eq!(order.into_inner().unwrap(), ["reader", "reader", "writer"]);
}

#[test]
fn a_deadline_ends_a_wait_and_nothing_else() {
    let lock = PhaseRw::new();
    assert!(lock.try_write());
    let start = Instant::now();
    assert!(!lock.read_until(Preference::Readers, deadline_in(Duration::from_millis(20))));
    assert!(!lock.write_until(deadline_in(Duration::from_millis(20))));
    assert!(start.elapsed() >= Duration::from_millis(40));
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_write() };

    assert!(lock.read_until(Preference::Readers, deadline_in(Duration::ZERO)));
    assert!(!lock.write_until(deadline_in(Duration::from_millis(20))));
    assert!(lock.try_read(Preference::Phases), "the writer has gone");
}
