//! On a simulated machine.

use std::cell::Cell;
use std::collections::BTreeMap;

use manycore_sim::{Model, thread};
use serde::{Deserialize, Serialize};

use super::load::{Load, Outcome, Stage, Worker};
use super::mechanism;
use super::{Options, Point};
use crate::counts::Counts;
use crate::run_records::RunRecords;
use crate::simulated::{
    Beside, Finding, Job, Program, Run, SimulatedCampaign, SimulatedProgram, SimulatorPool, Window,
    sight, variant,
};
use crate::slice::Pinning;
use crate::structure;

/// The time of an operation apart from its accesses. A guess, the same for all.
pub(super) const BESIDE: Beside = Beside::each(10.0);

pub(super) fn run(options: &Options, model: &Model, pool: &SimulatorPool) -> RunRecords {
    let campaign = SimulatedCampaign {
        points: &options.points(),
        mechanisms: &options.subjects(),
        machines: &variant::alone(model),
        pool,
    };
    let cpus = model.machine().topology.cpus();
    let job = |point: &Point, sync: &str, machine: &str| Job {
        machine: machine.to_owned(),
        cpus: None,
        mechanism: sync.to_owned(),
        threads: point.threads,
        program: Program::of(&Updates(options.load.clone(), point.update, options.beside)),
        measured: options.duration,
        pinning: Pinning::Auto,
        seed: options.load.seed,
        every_turn: false,
        // No thread waits for a CPU, so that there is no reason to sleep.
        patient: point.threads <= cpus,
    };
    campaign.run(job, |point, sync, findings, base| {
        let mut record = structure::simulated("rmap", sync, findings, base);
        record.machine.clone_from(&model.name);
        options.describe(record, *point)
    })
}

struct There {
    window: Window,
    /// Work after an operation that reads, and after one that updates, in cycles.
    outside: [u64; 2],
    tend: u64,
}

impl Stage for There {
    fn counted(&self) -> Option<bool> {
        let now = thread::now();
        (now < self.window.end).then_some(now >= self.window.begin)
    }

    fn now(&self) -> u64 {
        thread::now()
    }

    fn outside(&self, updates: bool) {
        thread::compute(self.outside[usize::from(updates)]);
    }

    fn tend_ticks(&self) -> u64 {
        self.tend
    }

    fn memory(&self) -> u64 {
        thread::heap_bytes() as u64
    }
}

/// The operations of threads, the share of updating operations in percent, and the time of an
/// operation apart from its accesses.
#[derive(Serialize, Deserialize)]
pub(super) struct Updates(Load, f64, Beside);

impl SimulatedProgram for Updates {
    const NAME: &'static str = "ReverseMap";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, &self.0, self.1, self.2)
    }
}

fn simulate(run: &Run, load: &Load, update: f64, beside: Beside) -> Result<Finding, String> {
    let job = run.job;
    let cycles = |ns: f64| (ns * run.ghz()) as u64;
    let outside = [false, true].map(|updates| cycles(load.outside_ns + beside.ns(updates)));
    let tend = cycles(load.tend.as_nanos() as f64);
    // Outside of the simulated memory: a worker's private data do not count as the mechanism's.
    let outcomes: Vec<_> = (0..job.threads).map(|_| Cell::new(Some(Outcome::new()))).collect();
    let drawn = load.trees_drawn();
    let report = run.simulate(|| {
        let structure = load.shape.structure();
        let unknown = || format!("no mechanism `{}` for `{structure}`", job.mechanism);
        let map = mechanism::simulated::make(&job.mechanism, load.shape, load.trees as usize);
        let map = map.ok_or_else(unknown)?;
        let empty = thread::heap_bytes();
        let filler = load.fill(&*map);
        let filled = thread::heap_bytes().saturating_sub(empty);
        let counts = Counts::read(|visit| map.statistics(visit));
        let full = thread::heap_bytes();
        let begin = thread::now();
        let mut window = match load.operations {
            Some(_) => Window::endless(begin),
            None => run.window(begin),
        };
        let stage = There { window, outside, tend };
        let outcomes = thread::parallel(job.threads, |me| {
            let outcome = outcomes[me as usize].take().expect("each thread runs once");
            let worker = Worker { me, update, sample: 1, trees: &drawn, outcome };
            load.run(&*map, worker, &stage)
        });
        // Before anything more is deferred.
        let put_off_max = map.put_off_max();
        let done = outcomes.iter().map(|outcome| outcome.all).sum();
        let statistics = Counts::read(|visit| map.statistics(visit)).since(&counts, done);
        drop(filler);
        let last = outcomes.iter().map(|outcome| outcome.ended).max().unwrap_or(begin);
        window.end = window.end.min(last);
        let intervals = load.filled(&*map);
        Ok::<_, String>(Left { outcomes, window, intervals, filled, full, put_off_max, statistics })
    })?;
    let left = report.result.as_ref().map_err(Clone::clone)?;
    let counts: Vec<u64> = left.outcomes.iter().map(|outcome| outcome.operations).collect();
    let operations = counts.iter().sum::<u64>().max(1);
    let mut sight = sight(&report, operations);
    let mut see = |name: &str, value: f64| _ = sight.insert(name.to_owned(), value);
    see("put_off_max", left.put_off_max as f64);
    // The first thread that ended saw all others at work.
    let memory = left.outcomes.iter().map(|outcome| outcome.memory).max().unwrap_or_default();
    see("memory", memory as f64 - left.full as f64);
    if left.intervals > 0 {
        see("bytes_per_interval", left.filled as f64 / left.intervals as f64);
    }
    for (name, count) in &left.statistics {
        see(&format!("count_{name}"), *count);
    }
    let times = left.outcomes.iter().map(|outcome| &outcome.times);
    Ok(Finding { slice: run.slice(left.window, counts, times), sight })
}

/// What the simulated program leaves.
#[derive(Clone)]
struct Left {
    outcomes: Vec<Outcome>,
    window: Window,
    /// The number of intervals that stay while threads work, and their size in bytes.
    intervals: u64,
    filled: usize,
    /// Bytes of the program when threads began.
    full: usize,
    put_off_max: u64,
    statistics: BTreeMap<String, f64>,
}
