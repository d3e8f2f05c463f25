//! Every lock as a raw mutex of `lock_api` with deadlines.

use std::thread;
use std::time::{Duration, Instant};

use lock_api::{Mutex, RawMutexTimed};
use manycore::lock;
use manycore::sync::Deadline;
use manycore_history::run::unless_interpreted;

const LONG: Duration = Duration::from_secs(60);
const EACH: u32 = unless_interpreted(200, 10);

fn waits_until_the_deadline<L>()
where
    L: RawMutexTimed<Duration = Duration, Instant = Deadline> + Sync,
{
    let mutex = Mutex::<L, u32>::new(0);
    let held = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(mutex.try_lock_for(Duration::from_millis(10)).is_none(), "it is held");
            assert!(start.elapsed() >= Duration::from_millis(10), "after {:?}", start.elapsed());
            let deadline = Deadline::after(Duration::from_millis(10));
            assert!(mutex.try_lock_until(deadline).is_none(), "it is held");
            assert!(deadline.has_passed());
            assert!(mutex.try_lock_for(Duration::ZERO).is_none(), "it is held");
        });
    });
    drop(held);
    *mutex.try_lock_for(Duration::ZERO).expect("it is free") += 1;
    *mutex.try_lock_until(Deadline::after(LONG)).expect("it is free") += 1;
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
