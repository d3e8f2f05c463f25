//! In the child of a fork, queues with waiting threads of the parent, which the child does not
//! have.
#![cfg(all(target_os = "linux", not(any(loom, manycore_bare, miri))))]
// A test is an ordinary program: the rules for algorithms are not for it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use manycore::delegate::FlatCombining;
use manycore::lock::{self, PlainLock, WaitQueue, Waiter};
use manycore::sync::Deadline;

/// Runs `body` in a forked child, which has to end within ten seconds; returns its wait status.
#[must_use]
fn in_child(body: impl FnOnce()) -> i32 {
    // SAFETY: the child goes on with its copy of this thread, and allocates nothing before it
    // exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork");
    if child == 0 {
        // SAFETY: `alarm` takes a number, and changes nothing in memory.
        unsafe { libc::alarm(10) };
        manycore::sync::thread::forked();
        body();
        // SAFETY: ends the child, and runs nothing more of it.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the kernel writes one number, into `status`.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

/// Runs `body` in `count` threads of a child, `meanwhile` in this one, and waits for all. They are
/// not std's threads: those take a lock of std's when they start, which another thread of the
/// parent may have had at the fork.
fn threads_of_a_child<F: Fn() + Sync>(count: usize, body: &F, meanwhile: impl FnOnce()) {
    extern "C" fn run<F: Fn() + Sync>(body: *mut c_void) -> *mut c_void {
        // SAFETY: the creator passes an `F`, and joins this thread before that ends.
        (unsafe { &*body.cast::<F>() })();
        ptr::null_mut()
    }
    let body = ptr::from_ref(body).cast_mut().cast();
    let mut threads = [0; 3];
    for thread in &mut threads[..count] {
        // SAFETY: the handle has room in the array, no attributes are given, and `run` reads of
        // `body` what `F: Sync` lets threads read.
        assert_eq!(unsafe { libc::pthread_create(thread, ptr::null(), run::<F>, body) }, 0);
    }
    meanwhile();
    for thread in &threads[..count] {
        // SAFETY: the handle is of a thread that `pthread_create` has made joinable, and this is
        // the only join of it.
        assert_eq!(unsafe { libc::pthread_join(*thread, ptr::null_mut()) }, 0);
    }
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
        let status = in_child(|| {
            // Without the generation, the drain would wait for the parent's threads, for ever.
            QUEUE.drain();
            let waiter = Waiter::new();
            // SAFETY: the waiter lives until it was signalled.
            unsafe { QUEUE.enqueue(&waiter) };
            QUEUE.signal();
            assert!(waiter.park(None));
        });
        QUEUE.broadcast();
        assert_eq!(status, 0);
    });
}

/// The child ignores the records of the parent's threads, even in sections that wait for others.
#[test]
fn a_child_combines_for_its_own_threads() {
    static COUNT: FlatCombining<u32> = FlatCombining::new(0);
    let add = || COUNT.with(|count| *count += 1);
    thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(move || (0..1_000).for_each(|_| add()));
        }
    });
    // One thread is in a section, so what another one has published waits.
    let at_fork = Barrier::new(2);
    let done = AtomicU32::new(0);
    thread::scope(|s| {
        let (at_fork, done) = (&at_fork, &done);
        s.spawn(move || {
            COUNT.with(|_| {
                at_fork.wait();
                while done.load(Ordering::Relaxed) == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        });
        at_fork.wait();
        s.spawn(add);
        thread::sleep(Duration::from_millis(20));
        let status = in_child(|| {
            let refused = std::panic::catch_unwind(add).is_err();
            assert!(refused, "another thread was at the data, which may be half changed");
        });
        done.store(1, Ordering::Relaxed);
        assert_eq!(status, 0);
    });
    let status = in_child(|| {
        threads_of_a_child(3, &|| (0..100).for_each(|_| add()), || {});
        assert_eq!(COUNT.with(|count| *count), 3_301);
    });
    assert_eq!(status, 0);
}

fn pass(lock: &impl PlainLock) {
    lock.acquire();
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release() };
}

/// Threads of a child take the lock by turns.
fn contend(lock: &impl PlainLock) {
    threads_of_a_child(2, &|| (0..20).for_each(|_| pass(lock)), || {});
}

/// The parent's thread holds the lock and others wait, as with a lock that an atfork handler takes.
/// In the child, one thread arrives before the release and others after it.
fn held_over_a_fork<L: PlainLock>() {
    let lock = L::new();
    lock.acquire();
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| pass(&lock));
        }
        thread::sleep(Duration::from_millis(20));
        let status = in_child(|| {
            threads_of_a_child(1, &|| pass(&lock), || {
                thread::sleep(Duration::from_millis(20));
                // SAFETY: the thread that forked, of which this is the copy, acquired it before the
                // fork.
                unsafe { lock.release() };
            });
            contend(&lock);
        });
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { lock.release() };
        assert_eq!(status, 0);
    });
}

/// The lock is held, and a waiter has been overtaken so often that it insists on being the next. In
/// the child that waiter does not exist.
fn insisted_on_over_a_fork<L: PlainLock>() {
    let lock = L::new();
    let (mut status, done) = (0, AtomicU32::new(0));
    lock.acquire();
    thread::scope(|s| {
        s.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                pass(&lock);
            }
        });
        for _ in 0..12 {
            thread::sleep(Duration::from_millis(2));
            status |= in_child(|| {
                // SAFETY: the thread that forked, of which this is the copy, acquired it before the
                // fork.
                unsafe { lock.release() };
                // Well before the child's alarm. (Patience is needed where a reservation lapses.)
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                let deadline =
                    Deadline { wall: true, seconds: now.as_secs() as i64 + 5, nanoseconds: 0 };
                assert!(lock.acquire_until(deadline), "no thread has it");
                // SAFETY: this thread has acquired it above, and not released it since.
                unsafe { lock.release() };
            });
            // SAFETY: acquired above, or in the last round.
            unsafe { lock.release() };
            lock.acquire();
        }
        done.store(1, Ordering::Relaxed);
        // SAFETY: acquired in the last round, by this thread, and not released since.
        unsafe { lock.release() };
    });
    assert_eq!(status, 0);
}

/// At the fork the lock is free, or held by a thread that does not exist in the child; others wait
/// all the time. If the child can acquire it, it works like a new one.
fn free_at_a_fork<L: PlainLock>() {
    let lock = L::new();
    let (mut status, done) = (0, AtomicU32::new(0));
    thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while done.load(Ordering::Relaxed) == 0 {
                    lock.acquire();
                    thread::sleep(Duration::from_micros(50));
                    // SAFETY: this thread has acquired it above, and not released it since.
                    unsafe { lock.release() };
                }
            });
        }
        for _ in 0..5 {
            lock.acquire();
            thread::sleep(Duration::from_millis(1));
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release() };
            status |= in_child(|| {
                if lock.try_acquire() {
                    // SAFETY: this thread has acquired it above, and not released it since.
                    unsafe { lock.release() };
                    contend(&lock);
                }
            });
        }
        done.store(1, Ordering::Relaxed);
    });
    assert_eq!(status, 0);
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                held_over_a_fork::<lock::$lock>();
                insisted_on_over_a_fork::<lock::$lock>();
                let info = <lock::$lock as PlainLock>::INFO;
                if info.blocks || info.order.hands_over() {
                    free_at_a_fork::<lock::$lock>(); // The others remember no waiters.
                }
            }
        )*
    };
}
manycore::for_each_lock!(tests);
