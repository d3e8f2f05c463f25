//! The reader-writer locks on simulated machines: exclusion with fewer threads than CPUs, as many, and more; and what
//! readers on many CPUs cost each other.

use manycore_sim::{Machine, Report, Simulation, thread};
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::{RawRwLock, lock};

/// Two numbers on a line of their own, which only the lock keeps equal.
#[repr(align(128))]
struct Shared(UnsafeCell<[u64; 2]>);

// SAFETY: touched with the lock held.
unsafe impl Sync for Shared {}

impl Shared {
    fn look(&self, work: u64) {
        // SAFETY: the lock is held.
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

/// What threads do: `length` cycles of sections, of which so many in a thousand write.
#[derive(Clone, Copy)]
struct Load {
    writes: u64,
    inside: u64,
    outside: u64,
    length: u64,
}

/// Has threads take a lock for some time; returns how often each did.
fn contend<L: RawRwLock>(threads: u32, load: Load) -> Vec<u64> {
    let lock = Box::new(L::new());
    let shared = Box::new(Shared(UnsafeCell::new([0; 2])));
    thread::parallel(threads, |me| {
        let (start, mut count) = (thread::now(), 0);
        while thread::now() - start < load.length {
            // Threads write at different times, and on the whole as often as asked.
            if (count + 7 * u64::from(me)) * load.writes % 1000 < load.writes {
                lock.acquire_write();
                shared.add(load.inside);
                // SAFETY: acquired above.
                unsafe { lock.release_write() };
            } else {
                lock.acquire_read();
                shared.look(load.inside);
                // SAFETY: acquired above.
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
