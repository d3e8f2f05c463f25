//! The reader-writer locks on simulated machines: exclusion with fewer threads than CPUs, as many,
//! and more; and how much readers on many CPUs delay each other.

use manycore_sim::{Machine, Report, Simulation, model, thread};
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::{RawRwLock, lock};

/// Two numbers on a line of their own, which only the lock keeps equal.
#[repr(align(128))]
struct Shared(UnsafeCell<[u64; 2]>);

// SAFETY: the numbers are only touched with the lock held.
unsafe impl Sync for Shared {}

impl Shared {
    fn look(&self, work: u64) {
        // SAFETY: the lock is held, and keeps other threads away.
        let look = || self.0.with(|numbers| unsafe { *numbers });
        let before = look();
        thread::compute(work);
        assert_eq!(before, [before[0]; 2], "a reader is admitted with a writer inside");
        assert_eq!(before, look(), "a writer is admitted with a reader inside");
    }

    fn add(&self, work: u64) {
        self.0.with_mut(|numbers| {
            // SAFETY: the lock is held; a lock that does not exclude shows as unequal numbers.
            let numbers = unsafe { &mut *numbers };
            numbers[0] += 1;
            thread::compute(work);
            numbers[1] += 1;
            assert_eq!(numbers[0], numbers[1], "two threads hold the lock");
        });
    }
}

/// The work of threads: `length` cycles of sections; this many in a thousand write.
#[derive(Clone, Copy)]
struct Load {
    writes: u64,
    inside: u64,
    outside: u64,
    length: u64,
}

/// Makes threads take a lock for some time; returns the number of each one's acquisitions.
fn contend<L: RawRwLock>(threads: u32, load: Load) -> Vec<u64> {
    let lock = Box::new(L::new());
    let shared = Box::new(Shared(UnsafeCell::new([0; 2])));
    thread::parallel(threads, |me| {
        let (start, mut count) = (thread::now(), 0);
        while thread::now() - start < load.length {
            // Threads write at different times, and altogether as often as requested.
            if (count + 7 * u64::from(me)) * load.writes % 1000 < load.writes {
                lock.acquire_write();
                shared.add(load.inside);
                // SAFETY: this thread has acquired it above, and not released it since.
                unsafe { lock.release_write() };
            } else {
                lock.acquire_read();
                shared.look(load.inside);
                // SAFETY: this thread has acquired it above, and not released it since.
                unsafe { lock.release_read() };
            }
            thread::compute(load.outside);
            count += 1;
        }
        count
    })
}

fn simulate<L: RawRwLock>(simulation: &Simulation, threads: u32, load: Load) -> Report<Vec<u64>> {
    simulation.run(|| contend::<L>(threads, load)).unwrap_or_else(|failure| panic!("{failure}"))
}

fn excludes<L: RawRwLock>() {
    let load = Load { writes: 300, inside: 200, outside: 300, length: 300_000 };
    for threads in [1, 2, 16] {
        simulate::<L>(&Simulation::new(&Machine::example()), threads, load);
    }
    let mut machine = Machine::example();
    machine.os.time_slice = 100_000;
    let few_cpus = Simulation::new(&machine).cpus(3).pinned(false);
    let report = simulate::<L>(&few_cpus, 9, Load { length: 4_000_000, ..load });
    assert!(report.result.iter().all(|count| *count > 0), "a thread never got the lock");
}

/// The same, twice.
fn repeats<L: RawRwLock>() {
    let load = Load { writes: 100, inside: 100, outside: 400, length: 60_000 };
    let report = || {
        let simulation = Simulation::new(&Machine::example()).cpus(12).seed(7);
        format!("{:?}", simulate::<L>(&simulation, 12, load))
    };
    assert_eq!(report(), report());
}

macro_rules! tests {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                excludes::<lock::$lock>();
                repeats::<lock::$lock>();
            }
        )*
    };
}
manycore_simulated::for_each_rw_lock!(tests);

/// The number of sections in a million cycles, of 120 threads on as many CPUs.
fn throughput_of_120<L: RawRwLock>(writes: u64, length: u64) -> f64 {
    let machine = model::find("xeon-e7-8870-8x15").unwrap().machine();
    let load = Load { writes, inside: 100, outside: 400, length };
    let report = simulate::<L>(&Simulation::new(&machine), 120, load);
    1e6 * report.result.iter().sum::<u64>() as f64 / report.cycles as f64
}

#[test]
fn readers_on_120_cpus_do_not_meet_where_they_mark_lines_of_their_own() {
    // Out of 1000 sections `writes` write, for `length` cycles. per-cpu-rw and bravo are at least
    // `least` times as fast as phase-rw. Where one section in a hundred writes, bravo has no bias
    // most of the time, and is about as fast as phase-rw.
    for (writes, length, least) in
        [(0, 200_000, [20.0, 20.0]), (1, 5_000_000, [2.0, 1.5]), (10, 5_000_000, [2.0, 0.7])]
    {
        let phase_rw = throughput_of_120::<lock::PhaseRw>(writes, length);
        let per_cpu = throughput_of_120::<lock::PerCpuRw>(writes, length) / phase_rw;
        let bravo = throughput_of_120::<lock::Bravo>(writes, length) / phase_rw;
        println!("{writes} of 1000 write: per-cpu-rw {per_cpu:.1}x phase-rw, bravo {bravo:.1}x");
        assert!(per_cpu > least[0], "per-cpu-rw: {per_cpu}x phase-rw with {writes} of 1000");
        assert!(bravo > least[1], "bravo: {bravo}x phase-rw with {writes} of 1000");
    }
}
