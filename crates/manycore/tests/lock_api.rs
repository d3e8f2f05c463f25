//! Every lock behind the types of `lock_api`.
#![cfg(not(any(loom, manycore_bare)))]

use std::thread;

use lock_api::{Mutex, RwLock};
use manycore::lock;

macro_rules! mutexes {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                let counter = Mutex::<lock::$lock, u32>::new(0);
                thread::scope(|s| {
                    (0..2).for_each(|_| _ = s.spawn(|| (0..100).for_each(|_| *counter.lock() += 1)));
                });
                let held = counter.lock();
                assert!(counter.try_lock().is_none(), "it is held");
                assert_eq!(*held, 200);
            }
        )*
    };
}
manycore::for_each_lock!(mutexes);

macro_rules! rw_locks {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                let counter = RwLock::<lock::$lock, u32>::new(0);
                thread::scope(|s| {
                    s.spawn(|| (0..100).for_each(|_| *counter.write() += 1));
                    s.spawn(|| (0..100).for_each(|_| assert!(*counter.read() <= 100)));
                });
                let reading = counter.read();
                assert_eq!(*reading, counter.try_read().map_or(0, |again| *again));
                assert!(counter.try_write().is_none(), "somebody reads");
                drop(reading);
                let writing = counter.write();
                assert!(counter.try_read().is_none() && counter.try_write().is_none());
                assert_eq!(*writing, 100);
            }
        )*
    };
}
manycore::for_each_rw_lock!(rw_locks);
