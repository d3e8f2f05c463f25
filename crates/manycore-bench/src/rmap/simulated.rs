//! On a simulated machine.

use std::cell::Cell;

use manycore_report::{Measurement, Mechanism};
use manycore_sim::{Model, thread};

use super::load::{Load, Outcome, Stage};
use super::mechanism;
use super::{Options, Point};
use crate::lock::Found;
use crate::simulated::{
    Beside, Campaign, Crew, Finding, Job, Program, Run, Window, record, sight, variant,
};
use crate::slice::Pinning;
use crate::waits::recorder;

/// What an operation takes beside its accesses. A guess, the same for all.
pub(super) const BESIDE: Beside = Beside::each(10.0);

/// The name of what a mechanism put off, among what only a simulator sees.
const PUT_OFF: &str = "put_off_max";

pub(super) fn run(options: &Options, model: &Model, crew: &Crew) -> Found {
    let campaign = Campaign {
        points: &options.points(),
        mechanisms: &options.subjects(),
        machines: &variant::alone(model),
        crew,
    };
    let cpus = model.machine().topology.cpus();
    let job = |point: &Point, sync: &str, machine: &str| Job {
        machine: machine.to_owned(),
        cpus: None,
        mechanism: sync.to_owned(),
        threads: point.threads,
        program: Program::ReverseMap(options.load.clone(), point.update, options.beside),
        measured: options.duration,
        pinning: Pinning::Auto,
        seed: options.load.seed,
        every_turn: false,
        // No thread waits for a CPU, so that there is no reason to sleep.
        patient: point.threads <= cpus,
    };
    campaign.run(job, |point, sync, findings, base| {
        let mut record = measurement(sync, findings, base);
        record.machine.clone_from(&model.name);
        options.describe(record, *point)
    })
}

fn measurement(sync: &str, findings: &[Finding], base: Option<&[Finding]>) -> Measurement {
    let mut record = record::of("rmap", Mechanism::Sync(sync.to_owned()), findings, 1.0);
    record.metrics = std::mem::take(&mut record.metrics)
        .into_iter()
        .map(|(name, metric)| (name.replace("wait_", "latency_"), metric))
        .collect();
    if let Some(put_off) = record.metrics.get_mut(PUT_OFF) {
        put_off.unit = "updates".to_owned();
    }
    let ratios = base.into_iter().flat_map(|base| record::ratios(findings, base));
    record.metrics.extend(ratios.filter(|(name, _)| name == "ratio"));
    record
}

struct There {
    window: Window,
    /// After an operation that reads, and after one that updates, in cycles.
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
}

/// Simulates one job in this process.
pub(crate) fn simulate(
    run: &Run,
    load: &Load,
    update: f64,
    beside: Beside,
) -> Result<Finding, String> {
    let job = run.job;
    let cycles = |ns: f64| (ns * run.ghz()) as u64;
    let outside = [false, true].map(|updates| cycles(load.outside_ns + beside.ns(updates)));
    let tend = cycles(load.tend.as_nanos() as f64);
    let recorders: Vec<_> = (0..job.threads).map(|_| Cell::new(Some(recorder()))).collect();
    let report = run.simulate(|| {
        let structure = load.shape.structure();
        let unknown = || format!("no mechanism `{}` for `{structure}`", job.mechanism);
        let map = mechanism::simulated::make(&job.mechanism, load.shape, load.trees as usize);
        let map = map.ok_or_else(unknown)?;
        let filled = load.fill(&*map);
        let window = run.window(thread::now());
        let stage = There { window, outside, tend };
        let outcomes = thread::parallel(job.threads, |me| {
            let times = recorders[me as usize].take().expect("each thread runs once");
            load.run(&*map, me, update, 1, &stage, Outcome { operations: 0, times })
        });
        drop(filled);
        Ok::<_, String>((outcomes, window, map.put_off_max()))
    })?;
    let (outcomes, window, put_off_max) = report.result.as_ref().map_err(Clone::clone)?;
    let counts: Vec<u64> = outcomes.iter().map(|outcome| outcome.operations).collect();
    let mut sight = sight(&report, counts.iter().sum::<u64>().max(1));
    sight.insert(PUT_OFF.to_owned(), *put_off_max as f64);
    let times = outcomes.iter().map(|outcome| &outcome.times);
    Ok(Finding { slice: run.slice(*window, counts, times), sight })
}
