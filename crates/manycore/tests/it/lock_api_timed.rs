//! Locks as raw locks of `lock_api` with deadlines; readers that read while they read.

use std::thread;
use std::time::{Duration, Instant};

use lock_api::{Mutex, RawMutexTimed, RawRwLockRecursive, RawRwLockTimed, RwLock};
use manycore::lock;
use manycore_history::run::unless_interpreted;

const LONG: Duration = Duration::from_secs(60);
const EACH: u32 = unless_interpreted(200, 10);

fn waits_until_the_deadline<L>()
where
    L: RawMutexTimed<Duration = Duration, Instant = Instant> + Sync,
{
    let mutex = Mutex::<L, u32>::new(0);
    let held = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(mutex.try_lock_for(Duration::from_millis(10)).is_none(), "it is held");
            assert!(start.elapsed() >= Duration::from_millis(10), "after {:?}", start.elapsed());
            let deadline = Instant::now() + Duration::from_millis(10);
            assert!(mutex.try_lock_until(deadline).is_none(), "it is held");
            assert!(deadline <= Instant::now());
            assert!(mutex.try_lock_for(Duration::ZERO).is_none(), "it is held");
        });
    });
    drop(held);
    *mutex.try_lock_for(Duration::ZERO).expect("it is free") += 1;
    *mutex.try_lock_until(Instant::now() + LONG).expect("it is free") += 1;
    *mutex.try_lock_for(Duration::MAX).expect("it is free") += 1;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                (0..EACH).for_each(|_| *mutex.try_lock_for(LONG).expect("a minute") += 1)
            });
        }
    });
    assert_eq!(mutex.into_inner(), 2 * EACH + 3);
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                waits_until_the_deadline::<lock::$lock>();
            }
        )*
    };
}
manycore::for_each_lock!(tests);

fn readers_and_writers_wait_until_the_deadline<L>()
where
    L: RawRwLockTimed<Duration = Duration, Instant = Instant> + RawRwLockRecursive + Sync,
{
    let soon = || Instant::now() + Duration::from_millis(10);
    let lock = RwLock::<L, u32>::new(0);
    let read = lock.read();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(lock.try_write_for(Duration::from_millis(10)).is_none(), "it is read");
            assert!(lock.try_write_until(soon()).is_none(), "it is read");
            assert_eq!(*lock.try_read_for(LONG).expect("readers share it"), 0);
        });
    });
    thread::scope(|scope| {
        let writer = scope.spawn(|| *lock.write() += 1);
        // While the writer waits, a new reader would wait for it, and it for us.
        while lock.try_read().is_some() {
            thread::yield_now();
        }
        assert_eq!(*lock.read_recursive(), 0);
        drop(read);
        writer.join().unwrap();
    });
    let write = lock.write();
    thread::scope(|scope| {
        scope.spawn(|| {
            let started = Instant::now();
            assert!(lock.try_read_for(Duration::from_millis(10)).is_none(), "it is written");
            assert!(lock.try_read_until(soon()).is_none(), "it is written");
            assert!(started.elapsed() >= Duration::from_millis(20));
        });
    });
    drop(write);
    *lock.try_write_until(Instant::now() + LONG).expect("it is free") += 1;
    assert_eq!(lock.into_inner(), 2);
}

#[test]
fn readers_of_the_adaptive_lock() {
    readers_and_writers_wait_until_the_deadline::<lock::AdaptiveRw>();
}

#[test]
fn readers_of_the_phase_fair_lock() {
    readers_and_writers_wait_until_the_deadline::<lock::PhaseRw>();
}
