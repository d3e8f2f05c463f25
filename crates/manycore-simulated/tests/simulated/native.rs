//! One program has both builds of the same source.

use std::sync::atomic::{AtomicU64, Ordering};

use manycore_sim::{Machine, Simulation};

/// Adds under a lock of either build: they have the same interface.
macro_rules! add_a_thousand {
    ($library:ident, $lock:expr, $value:expr) => {{
        use $library::lock::PlainLock;
        for _ in 0..1000 {
            $lock.acquire();
            // Relaxed, both: protected by the lock.
            $value.store($value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { $lock.release() };
        }
    }};
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                let (lock, value) = (manycore::lock::$lock::new(), AtomicU64::new(0));
                std::thread::scope(|scope| {
                    (0..2).for_each(|_| _ = scope.spawn(|| add_a_thousand!(manycore, lock, value)));
                });
                assert_eq!(value.into_inner(), 2000, "native");

                let report = Simulation::new(&Machine::example()).run(|| {
                    let (lock, value) = (manycore_simulated::lock::$lock::new(), AtomicU64::new(0));
                    manycore_sim::thread::parallel(2, |_| add_a_thousand!(manycore_simulated, lock, value));
                    value.into_inner()
                });
                let report = report.unwrap();
                assert_eq!(report.result, 2000, "simulated");
                assert!(report.accesses() >= 4000, "an access is not charged");
            }
        )*
    };
}
manycore_simulated::for_each_lock!(tests);

#[test]
fn the_native_build_is_not_simulated() {
    let report = Simulation::new(&Machine::example()).run(|| {
        let lock = manycore::lock::Futex::new();
        manycore::lock::PlainLock::acquire(&lock);
    });
    assert_eq!(report.unwrap().accesses(), 0);
}
