//! The simulated program: threads that compute and call the kernel, each on a CPU of its own.

use std::cell::Cell;
use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use manycore_sim::thread;
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};

use super::locks::{Site, Tally};
#[cfg(test)]
use super::numbers::Numbers;
use super::processes::Processes;
use super::run_queues::RunQueues;
use super::threads::Space;
use super::{Application, Load};
use crate::simulated::{Finding, Run, SimulatedProgram, Window, sight};
use crate::waits::recorder;

/// What the threads share.
enum Shared<'a> {
    Processes(Box<Processes<'a>>),
    Threads(Box<Space<'a>>),
}

/// A thread's results in the counted time.
#[derive(Clone)]
struct Outcome {
    operations: u64,
    /// The time from the start or the arrival of an operation to its end, in cycles.
    times: Histogram<u64>,
}

impl SimulatedProgram for Load {
    const NAME: &'static str = "Kernel";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

fn simulate(run: &Run, load: &Load) -> Result<Finding, String> {
    let (job, ghz) = (run.job, run.ghz());
    let window = run.window(0);
    let numbers = &load.numbers;
    let tallies: Vec<Tally> = (0..job.threads).map(|_| Tally::default()).collect();
    let recorders: Vec<_> = (0..job.threads).map(|_| Cell::new(Some(recorder()))).collect();
    let arrivals = arrivals(load, ghz, window, job.seed);
    let served = Cell::new(0);
    let report = run.simulate(|| {
        let threads = RunQueues::new(numbers, ghz, window, job.threads);
        let shared = match load.application {
            Application::Processes => {
                let processes = Processes::new(numbers, ghz, window, job.threads);
                Shared::Processes(Box::new(processes))
            }
            Application::Threads => {
                Shared::Threads(Box::new(Space::new(numbers, ghz, window, job.threads)))
            }
        };
        let next = CachePadded(AtomicU64::new(0));
        let outcomes = thread::parallel(job.threads, |me| {
            let times = recorders[me as usize].take().expect("each thread runs once");
            let mut outcome = Outcome { operations: 0, times };
            let seed = job.seed.wrapping_add(1 + u64::from(me));
            let mut random = fastrand::Rng::with_seed(seed);
            let tally = &tallies[me as usize];
            while let Some(begin) = begin(arrivals.as_deref(), &next, window) {
                let computation = -(1.0 - random.f64()).ln() * load.compute_ns * ghz;
                match &shared {
                    Shared::Processes(processes) => {
                        thread::compute(computation as u64);
                        processes.operation(me, tally, &threads, &mut random);
                    }
                    Shared::Threads(space) => {
                        space.operation(me, tally, &threads, &mut random, computation as u64);
                    }
                }
                let now = thread::now();
                if (window.begin..window.end).contains(&now) {
                    outcome.operations += 1;
                    outcome.times.saturating_record((now - begin).max(1));
                }
            }
            outcome
        });
        // Relaxed: all threads have ended.
        served.set(next.load(Ordering::Relaxed));
        outcomes
    })?;
    let mut outcomes = report.result.clone();
    // A request that has arrived and was not served has waited for at least this long.
    for arrival in arrivals.iter().flatten().skip(served.get() as usize) {
        if (window.begin..window.end).contains(arrival) {
            outcomes[0].times.saturating_record((window.end - arrival).max(1));
        }
    }
    let counts: Vec<u64> = outcomes.iter().map(|outcome| outcome.operations).collect();
    let operations = counts.iter().sum::<u64>();
    if operations == 0 {
        return Err("no operation ended in the time: let it be longer".to_owned());
    }
    let mut sight = sight(&report, operations);
    sight.extend(waits(&tallies, operations));
    let times = outcomes.iter().map(|outcome| &outcome.times);
    Ok(Finding { slice: run.slice(window, counts, times), sight })
}

/// The times of requests, if they do not depend on served requests. The rate keeps this number of
/// cores busy with the requests' own work.
fn arrivals(load: &Load, ghz: f64, window: Window, seed: u64) -> Option<Vec<u64>> {
    let offered = load.offered?;
    let apart = load.own_ns() * ghz / offered;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 0.0;
    let next = || {
        at += -(1.0 - random.f64()).ln() * apart;
        Some(at as u64)
    };
    Some(std::iter::from_fn(next).take_while(|at| *at < window.end).collect())
}

/// The start of a thread's next operation; `None` if the time is over.
fn begin(arrivals: Option<&[u64]>, next: &AtomicU64, window: Window) -> Option<u64> {
    let now = thread::now();
    let Some(arrivals) = arrivals else { return (now < window.end).then_some(now) };
    if now >= window.end {
        return None;
    }
    // Relaxed: it deals out numbers.
    let arrival = *arrivals.get(next.fetch_add(1, Ordering::Relaxed) as usize)?;
    thread::compute(arrival.saturating_sub(thread::now()));
    Some(arrival)
}

/// For each lock, its share of all waiting in percent, and its acquisitions for each operation; for
/// each site, its share of the contentions of its lock.
fn waits(tallies: &[Tally], operations: u64) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    let sum = |site: Site, part: fn(&super::locks::Count) -> u64| -> f64 {
        tallies.iter().map(|tally| part(tally.at(site))).sum::<u64>() as f64
    };
    let waited = |site| sum(site, |count| count.waited.get());
    let contended = |site| sum(site, |count| count.contended.get());
    let all = Site::ALL.into_iter().map(waited).sum::<f64>().max(1.0);
    for site in Site::ALL {
        let taken = sum(site, |count| count.taken.get());
        if taken == 0.0 {
            continue;
        }
        let (lock, way) = site.lock();
        let with_way = way.map(|way| format!("{lock}_{way}"));
        for name in [Some(lock.to_owned()), with_way].into_iter().flatten() {
            *found.entry(format!("share_wait_{name}")).or_default() += 100.0 * waited(site) / all;
            *found.entry(format!("taken_{name}")).or_default() += taken / operations as f64;
        }
        if let Some(name) = site.name() {
            let of_lock = Site::ALL.into_iter().filter(|other| other.lock() == site.lock());
            let of_lock = of_lock.map(contended).sum::<f64>().max(1.0);
            found.insert(format!("share_contended_{name}"), 100.0 * contended(site) / of_lock);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::simulated::{self, Job, Program};
    use crate::slice::Pinning;

    fn load(application: Application) -> Load {
        let numbers = Numbers::of(application);
        Load { application, compute_ns: 100_000.0, numbers, offered: None }
    }

    fn finding(threads: u32, load: Load) -> Finding {
        let job = Job {
            machine: manycore_sim::model::find("xeon-4x6").unwrap().to_toml(),
            cpus: None,
            mechanism: "jobs".to_owned(),
            threads,
            program: Program::of(&load),
            measured: Duration::from_millis(5),
            pinning: Pinning::Each,
            seed: 1,
            every_turn: false,
            patient: false,
        };
        simulated::simulate::<Load>(&job).unwrap()
    }

    #[test]
    fn locks_are_taken_as_often_as_the_calls_need() {
        let alone = finding(1, load(Application::Processes)).sight;
        let near = |name: &str, expected: f64| {
            let taken = alone[name];
            assert!((0.8..1.25).contains(&(taken / expected)), "{name}: {taken}, not {expected}");
        };
        // Each of 14 mappings has two links at a fork, and one is removed at an exit. No other
        // thread runs, so there is no wait.
        near("taken_anon_vma_write", 42.0);
        near("taken_i_mmap", 28.0);
        near("taken_tasklist_lock", 3.0);
        assert_eq!(alone["share_wait_anon_vma"], 0.0);
        let alone = finding(1, load(Application::Threads)).sight;
        assert!((7.0..9.0).contains(&alone["taken_mmap_sem_read"]));
        // Each one within another one, except for one at either end of the counted time.
        let both = alone["taken_mmap_sem_read"] / alone["taken_page_table_lock"];
        assert!((0.99..1.01).contains(&both), "{both}");
    }

    #[test]
    fn what_is_done_more_often_is_waited_for_more() {
        let share = |name: &str, value: f64| {
            let mut load = load(Application::Processes);
            load.numbers.set(name, value).unwrap();
            finding(24, load).sight
        };
        let (few, many) = (share("walks", 0.01), share("walks", 0.3));
        assert!(many["share_wait_anon_vma_read"] > 2.0 * few["share_wait_anon_vma_read"]);
        let (short, long) = (share("log_ns", 100.0), share("log_ns", 20_000.0));
        assert!(long["share_wait_f_pos_lock"] > 2.0 * short["share_wait_f_pos_lock"]);
    }

    #[test]
    fn requests_that_come_at_random_wait_longer_the_more_there_are() {
        let at = |offered: f64| {
            let load = Load { offered: Some(offered), ..load(Application::Threads) };
            let slice = finding(12, load).slice;
            (slice.waits.quantile(0.99).unwrap(), slice.throughput())
        };
        let (few, many, too_many) = (at(2.0), at(9.0), at(24.0));
        assert!(few.0 < many.0 && many.0 < too_many.0, "{few:?}, {many:?}, {too_many:?}");
        assert!(many.1 > 3.0 * few.1, "what is offered is served: {few:?}, {many:?}");
        assert!(too_many.1 < 1.6 * many.1, "what cannot be served is not: {many:?}, {too_many:?}");
    }
}
