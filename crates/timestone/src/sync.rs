//! Locks that threads wait for, parking_lot's, and the clock of the CPUs. In a simulation, where
//! that would hold up all threads, the locks are the library's; and clocks differ there.

#[cfg(not(feature = "sim"))]
pub use manycore::clock::Ordo as Counters;
#[cfg(not(feature = "sim"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(feature = "sim")]
pub use simulated::{Condvar, Counters, Mutex, MutexGuard};

#[cfg(feature = "sim")]
mod simulated {
    use std::time::Instant;

    use manycore::clock::{Clock, Ordo};
    use manycore::lock::{self, Futex};
    use manycore::sync::hint;
    use manycore_sim::{backend, thread};

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

    /// Counters of which each thread has its own, ahead of those of threads before it.
    pub struct Counters(Ordo);

    /// A few times as much as the counter goes forward each time that it is read.
    const SKEW: u64 = 3000;

    impl Default for Counters {
        fn default() -> Self {
            // That is the largest skew.
            Self(Ordo::with_boundary(2 * SKEW))
        }
    }

    impl Counters {
        /// None for who cleans up after a simulation that has failed.
        fn skew() -> u64 {
            if backend::is_simulating() { u64::from(thread::id() % 3) * SKEW } else { 0 }
        }
    }

    // SAFETY: any two counters differ by the boundary at most.
    unsafe impl Clock for Counters {
        fn present(&self) -> u64 {
            self.0.present() + Self::skew()
        }

        fn stamp(&self) -> u64 {
            self.0.stamp() + Self::skew()
        }

        fn fresh(&self) -> u64 {
            let fresh = self.present() + 2 * self.0.boundary() + 1;
            loop {
                let now = self.present();
                if now >= fresh {
                    return now;
                }
                hint::pause();
            }
        }

        fn horizon(&self) -> u64 {
            self.present().saturating_sub(self.0.boundary())
        }

        fn pass(&self, stamp: u64) {
            while self.present() < stamp {
                hint::pause();
            }
        }
    }
}
