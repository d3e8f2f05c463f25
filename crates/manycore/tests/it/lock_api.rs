//! Every lock behind the types of `lock_api`.

use std::thread;

use lock_api::{Mutex, RwLock};
use manycore::lock;
use manycore_history::run::unless_interpreted;

/// How often each thread has it.
const EACH: u32 = unless_interpreted(100, 10);

macro_rules! mutexes {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case, reason = "named as the lock")]
            fn $lock() {
                let counter = Mutex::<lock::$lock, u32>::new(0);
                thread::scope(|s| {
                    (0..2).for_each(|_| _ = s.spawn(|| (0..EACH).for_each(|_| *counter.lock() += 1)));
                });
                let held = counter.lock();
                assert!(counter.try_lock().is_none(), "it is held");
                assert_eq!(*held, 2 * EACH);
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
                    s.spawn(|| (0..EACH).for_each(|_| *counter.write() += 1));
                    s.spawn(|| (0..EACH).for_each(|_| assert!(*counter.read() <= EACH)));
                });
                let reading = counter.read();
                assert_eq!(*reading, counter.try_read().map_or(0, |again| *again));
                assert!(counter.try_write().is_none(), "somebody reads");
                drop(reading);
                let writing = counter.write();
                assert!(counter.try_read().is_none() && counter.try_write().is_none());
                assert_eq!(*writing, EACH);
            }
        )*
    };
}
manycore::for_each_rw_lock!(rw_locks);
