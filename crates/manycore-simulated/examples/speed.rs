//! The speed of the simulator: accesses in a second of host CPU time, for each lock on 120 CPUs.
//!
//! ```console
//! $ cargo run --release -p manycore-simulated --example speed [LOCK]...
//! ```
//!
//! Prints, for each lock, the simulated acquisitions in a million cycles, the number of simulated
//! accesses, the accesses in a second of CPU time, and the cycles simulated in that second, in the
//! fastest of three runs, because other load on a shared host slows runs down. Then prints the
//! worst and the median; exits with 1 if they miss the project's promise.

use std::process::ExitCode;

use manycore_sim::{Report, Simulation, model, thread};
use manycore_simulated::lock::{self, PlainLock};
use manycore_simulated::sync::{cell::UnsafeCell, tuning};

/// Millions of accesses a second, at least.
const WORST: f64 = 2.0;
const MEDIAN: f64 = 8.0;

const THREADS: u32 = 120;
const CYCLES: u64 = 50_000_000;
const RUNS: u32 = 3;

/// Data on a line of its own.
#[repr(align(128))]
struct Data(UnsafeCell<[u64; 4]>);

fn contend<L: PlainLock>() -> u64 {
    tuning::set_spin_limit(u32::MAX);
    let (lock, data) = (Box::new(L::new()), Box::new(Data(UnsafeCell::new([0; 4]))));
    let counts = thread::parallel(THREADS, |_| {
        let mut count = 0_u64;
        while thread::now() < CYCLES {
            lock.acquire();
            // SAFETY: the lock is held, and keeps other threads away.
            data.0.with_mut(|data| unsafe { (*data)[0] += 1 });
            thread::compute(100);
            // SAFETY: this thread has acquired the lock three lines up.
            unsafe { lock.release() };
            thread::compute(400);
            count += 1;
        }
        count
    });
    counts.iter().sum()
}

/// CPU time of this process, in seconds.
fn cpu_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux says");
    let nanoseconds: f64 = stat.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    nanoseconds / 1e9
}

/// A simulation, and the CPU time that it took.
fn timed<L: PlainLock>(simulation: &Simulation) -> (Report<u64>, f64) {
    let start = cpu_time();
    let report = simulation.run(contend::<L>).unwrap_or_else(|failure| panic!("{failure}"));
    (report, cpu_time() - start)
}

fn measure<L: PlainLock>(simulation: &Simulation) -> f64 {
    let (report, first) = timed::<L>(simulation);
    let seconds = (1..RUNS).map(|_| timed::<L>(simulation).1).fold(first, f64::min);
    let rate = report.accesses() as f64 / seconds / 1e6;
    println!(
        "{:14} {:9.1} {:10} {:8.2} M/s {:8.2} Mcycles/s",
        L::INFO.name,
        1e6 * report.result as f64 / report.cycles as f64,
        report.accesses(),
        rate,
        report.cycles as f64 / seconds / 1e6,
    );
    rate
}

fn main() -> ExitCode {
    let machine = model::find("xeon-e7-8870-8x15").expect("it is there").machine();
    let simulation = Simulation::new(&machine);
    let chosen: Vec<_> = std::env::args().skip(1).collect();
    let mut rates = Vec::new();
    macro_rules! measure {
        ($($lock:ident),* $(,)?) => {
            $(
                let name = <lock::$lock as PlainLock>::INFO.name;
                if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
                    rates.push(measure::<lock::$lock>(&simulation));
                }
            )*
        };
    }
    manycore_simulated::for_each_lock!(measure);
    rates.sort_by(f64::total_cmp);
    let (worst, median) = (rates[0], rates[rates.len() / 2]);
    println!("worst {worst:.2} M/s (at least {WORST}), median {median:.2} M/s (at least {MEDIAN})");
    if worst >= WORST && median >= MEDIAN { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
