//! Locks that threads wait for, parking_lot's, and the clock of the CPUs. In a simulation, where
//! that would hold up all threads, the locks are the library's; and clocks differ there.

#[cfg(not(feature = "sim"))]
pub use manycore::clock::Ordo as Counters;
#[cfg(feature = "sim")]
pub use manycore::clock::Skewed as Counters;
#[cfg(not(feature = "sim"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(feature = "sim")]
pub use simulated::{Condvar, Mutex, MutexGuard};

#[cfg(feature = "sim")]
mod simulated {
    use std::time::Instant;

    use manycore::lock::{self, Futex};

    pub type Mutex<T> = lock_api::Mutex<Futex, T>;
    pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, Futex, T>;

    #[derive(Default)]
    pub struct Condvar(lock::Condvar);

    impl Condvar {
        pub const fn new() -> Self {
            Self(lock::Condvar::new())
        }

        pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            self.0.wait(guard);
        }

        pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, end: Instant) {
            self.0.wait_for(guard, end.saturating_duration_since(Instant::now()));
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
