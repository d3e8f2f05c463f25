//! On a simulated machine, one mechanism after the other.

use std::cell::Cell;
use std::collections::BTreeMap;

use manycore_report::{Measurement, Mechanism, Metric};
use manycore_sim::{Machine, Model, Simulation, thread};
use manycore_simulated::sync::tuning;

use super::load::{Load, Outcome, Stage};
use super::mechanism;
use super::{Options, Point};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::simulated::{Finding, record};
use crate::slice::Slice;
use crate::waits::{Waits, recorder};

/// What a turn of a thread's loop takes beside its accesses: drawing numbers, counting, the calls. A guess.
const LOOP_NS: f64 = 10.0;

pub(super) fn run(options: &Options, model: &Model) -> Result<Vec<Measurement>, Failure> {
    let (subjects, points, machine) = (options.subjects(), options.points(), model.machine());
    let progress = Progress::steps(options.progress, points.len() * subjects.len());
    let mut records = Vec::new();
    for point in points {
        let mut base = None;
        for name in &subjects {
            progress.step(format!("{name}, {} threads", point.threads));
            let load = options.load(point, options.seed);
            let run = Run { options, point, load, machine: &machine };
            let (finding, put_off_max) = run.simulate(name).map_err(|error| {
                Failure::Failed(format!("{name}, {} threads: {error}", point.threads))
            })?;
            let throughput = finding.slice.throughput();
            let mechanism = Mechanism::Sync(name.clone());
            let mut record = record::of("rmap", mechanism, &[finding], 1.0);
            record.machine.clone_from(&model.name);
            record.metrics = std::mem::take(&mut record.metrics)
                .into_iter()
                .map(|(name, metric)| (name.replace("wait_", "time_of_"), metric))
                .collect();
            let ratio = base.map(|base: f64| throughput / base);
            base.get_or_insert(throughput);
            let metrics =
                [("ratio", "ratio", ratio), ("put_off_max", "updates", Some(put_off_max as f64))];
            for (name, unit, value) in metrics {
                let metric = |value| Metric { value, unit: unit.to_owned(), low: None, high: None };
                record.metrics.extend(value.map(|value| (name.to_owned(), metric(value))));
            }
            records.push(options.describe(record, point));
        }
    }
    Ok(records)
}

/// A mechanism at a point.
struct Run<'a> {
    options: &'a Options,
    point: Point,
    load: Load,
    machine: &'a Machine,
}

/// In cycles.
struct There {
    begin: u64,
    end: u64,
    outside: u64,
    tend: u64,
}

impl Stage for There {
    fn counted(&self) -> Option<bool> {
        let now = thread::now();
        (now < self.end).then_some(now >= self.begin)
    }

    fn now(&self) -> u64 {
        thread::now()
    }

    fn outside(&self) {
        thread::compute(self.outside);
    }

    fn tend_ticks(&self) -> u64 {
        self.tend
    }
}

impl Run<'_> {
    fn simulate(&self, name: &str) -> Result<(Finding, u64), String> {
        let (options, threads, ghz) = (self.options, self.point.threads, self.machine.core.ghz);
        let cycles = |ns: f64| (ns * ghz) as u64;
        let measured = cycles(options.duration.as_nanos() as f64);
        let outside = cycles(options.outside_ns + LOOP_NS);
        let tend = cycles(options.tend.as_nanos() as f64);
        let recorders: Vec<_> = (0..threads).map(|_| Cell::new(Some(recorder()))).collect();
        let cpus = self.machine.topology.cpus();
        let simulation = Simulation::new(self.machine).seed(options.seed).pinned(threads <= cpus);
        let report = simulation.run(|| {
            // No thread waits for a CPU, so that there is no reason to sleep.
            if threads <= cpus {
                tuning::set_spin_limit(u32::MAX);
            }
            let map = mechanism::simulated::make(name, options.trees as usize);
            let map = map.expect("the names were checked");
            let filled = self.load.fill(&*map);
            let begin = thread::now() + measured / 5;
            let stage = There { begin, end: begin + measured, outside, tend };
            let outcomes = thread::parallel(threads, |me| {
                let times = recorders[me as usize].take().expect("each thread runs once");
                self.load.run(&*map, me, 1, &stage, Outcome { operations: 0, times })
            });
            drop(filled);
            (outcomes, map.put_off_max())
        });
        let report = report
            .map_err(|failure| failure.to_string().lines().next().unwrap_or_default().to_owned())?;
        let (outcomes, put_off_max) = report.result;
        let mut waits = Waits::default();
        outcomes.iter().for_each(|outcome| waits.add_ticks(&outcome.times, 1.0 / ghz));
        let slice = Slice {
            counts: outcomes.iter().map(|outcome| outcome.operations).collect(),
            elapsed_ns: measured as f64 / ghz,
            waits,
            stuck: 0,
        };
        Ok((Finding { slice, sight: BTreeMap::new() }, put_off_max))
    }
}
