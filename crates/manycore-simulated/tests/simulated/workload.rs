//! Threads that want one lock.

use manycore_sim::thread::{self, Phase};
use manycore_sim::{Machine, Report, Simulation, backend};
use manycore_simulated::lock::PlainLock;
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::sync::tuning;

/// Two numbers on a line of their own, which only the lock keeps equal.
#[repr(align(128))]
struct Shared(UnsafeCell<[u64; 2]>);

// SAFETY: the numbers are only touched with the lock held.
unsafe impl Sync for Shared {}

/// What a thread does between two acquisitions.
#[derive(Clone, Copy)]
pub struct Load {
    /// In the section, beside two accesses to shared data.
    pub inside: u64,
    /// Outside it.
    pub outside: u64,
    /// For how many cycles.
    pub length: u64,
}

/// Makes threads take a lock for some time; returns the number of each one's acquisitions.
pub fn contend<L: PlainLock + 'static>(threads: u32, load: Load) -> Vec<u64> {
    // No thread waits for a CPU, so that there is no reason to sleep.
    if threads <= backend::cpus() {
        tuning::set_spin_limit(u32::MAX);
    }
    let lock = Box::new(L::new());
    let shared = Box::new(Shared(UnsafeCell::new([0; 2])));
    let counts = thread::parallel(threads, |_| {
        let (start, mut count) = (thread::now(), 0);
        while thread::now() - start < load.length {
            thread::in_phase(Phase::Lock, || lock.acquire());
            shared.0.with_mut(|numbers| {
                // SAFETY: the lock is held; a lock that does not exclude shows as unequal numbers.
                let numbers = unsafe { &mut *numbers };
                numbers[0] += 1;
                thread::compute(load.inside);
                numbers[1] += 1;
                assert_eq!(numbers[0], numbers[1], "two threads hold the lock");
            });
            // SAFETY: this thread has acquired it above, and not released it since.
            thread::in_phase(Phase::Lock, || unsafe { lock.release() });
            thread::compute(load.outside);
            count += 1;
        }
        count
    });
    let total = counts.iter().sum::<u64>();
    // SAFETY: no other thread has it any more.
    assert_eq!(shared.0.with(|numbers| unsafe { *numbers }), [total; 2]);
    counts
}

/// Does the same on a machine; returns the acquisitions in a million cycles.
pub fn throughput<L: PlainLock + 'static>(machine: &Machine, threads: u32, load: Load) -> f64 {
    let report = simulate::<L>(&Simulation::new(machine), threads, load);
    1e6 * report.result.iter().sum::<u64>() as f64 / report.cycles as f64
}

pub fn simulate<L: PlainLock + 'static>(
    simulation: &Simulation,
    threads: u32,
    load: Load,
) -> Report<Vec<u64>> {
    simulation.run(|| contend::<L>(threads, load)).unwrap_or_else(|failure| panic!("{failure}"))
}
