//! One simulation: what determines its result, and the result.

use std::cell::Cell;
use std::collections::BTreeMap;

use manycore_sim::{Machine, Model, Report, Simulation, thread};
use manycore_simulated::sync::tuning;
use serde::{Deserialize, Serialize};

use super::set;
use super::stage::{self, AnyStage, Count, Window};
use crate::contender::{self, Contender, Visitor};
use crate::set::Task;
use crate::slice::{Outcome, Pinning, Runner, Settings, Slice};
use crate::waits::Waits;
use crate::work::Pace;

/// All that determines the result of a simulation, but for the simulator itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The machine's model, as the text of its file.
    pub machine: String,
    /// How many of its CPUs the program may use; all if nothing is said.
    pub cpus: Option<u32>,
    /// The lock's name.
    pub lock: String,
    /// What the threads do, for how long in simulated time. The pace, the sample and the drain are not looked at.
    pub settings: Settings,
    /// Whether each turn of a polling loop is simulated.
    pub every_turn: bool,
    /// Whether waiters of queue locks spin for as long as it takes.
    pub patient: bool,
    /// What is done with a set, in place of sections under locks; the lock's name is then the mechanism's.
    pub task: Option<Task>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What a native slice would have measured.
    pub slice: Slice,
    /// What only a simulator sees, by the name of the metric: shares of time in percent, messages for each section.
    pub sight: BTreeMap<String, f64>,
}

impl Job {
    /// Runs the simulation in this process. The error says in a line why there is no result.
    pub fn run(&self) -> Result<Finding, String> {
        let model = Model::parse("model", &self.machine).map_err(|problem| problem.to_string())?;
        let run = Run { job: self, machine: model.machine() };
        if let Some(task) = &self.task {
            return set::simulate(self, task, &run.machine, &run.simulation());
        }
        let unknown = || Err(format!("there is no lock `{}` that can be simulated", self.lock));
        contender::simulated::with(&self.lock, Stager).map_or_else(unknown, |set| run.simulate(set))
    }
}

/// A job on its machine.
struct Run<'a> {
    job: &'a Job,
    machine: Machine,
}

/// What the simulated program leaves.
type Left = (Vec<Outcome>, u64);

/// Sets a stage: for so many locks, what is counted when, the clock's rate, and where to count.
type Staging = for<'a> fn(usize, Window, f64, &'a [Count]) -> Box<dyn AnyStage + 'a>;

/// What sets a stage for a kind of lock.
struct Stager;

impl Visitor for Stager {
    type Output = Staging;

    fn visit<C: Contender>(self) -> Staging {
        stage::set::<C>
    }
}

impl Run<'_> {
    fn simulate(&self, set: Staging) -> Result<Finding, String> {
        let ghz = self.machine.core.ghz;
        // A turn of work is a cycle.
        let settings =
            Settings { pace: Pace::of(1.0 / ghz), sample: 1, ..self.job.settings.clone() };
        let cycles = |time: std::time::Duration| (time.as_nanos() as f64 * ghz) as u64;
        let begin = cycles(settings.warm_up);
        let window = Window { begin, end: begin + cycles(settings.measured) };
        let counts: Vec<Count> = (0..settings.threads).map(|_| Count::default()).collect();
        let runners: Vec<Cell<Option<Runner>>> = (0..settings.threads as usize)
            .map(|index| Cell::new(Some(Runner::new(index, &settings))))
            .collect();
        let report = self.simulation().run(|| -> Left {
            if self.job.patient {
                tuning::set_spin_limit(u32::MAX);
            }
            let locks = settings.mix.locks.len();
            let stage = set(locks, window, ghz, &counts);
            let outcomes = thread::parallel(settings.threads, |index| {
                let runner = runners[index as usize].take().expect("each thread runs once");
                stage.run(runner)
            });
            (outcomes, stage.written())
        });
        let report = report.map_err(|failure| first_lines(&failure.to_string()))?;
        verify(&report.result)?;
        let mut waits = Waits::default();
        for outcome in &report.result.0 {
            waits.add_ticks(&outcome.waits, 1.0 / ghz);
        }
        let slice = Slice {
            counts: counts.iter().map(Count::counted).collect(),
            elapsed_ns: (window.end - window.begin) as f64 / ghz,
            waits,
            stuck: 0,
        };
        let sections = report.result.0.iter().map(|outcome| outcome.sections).sum::<u64>().max(1);
        Ok(Finding { slice, sight: sight(&report, sections) })
    }

    fn simulation(&self) -> Simulation {
        let settings = &self.job.settings;
        let cpus = self.job.cpus.unwrap_or(u32::MAX).min(self.machine.topology.cpus());
        let pinned = match settings.pinning {
            Pinning::Auto => settings.threads <= cpus,
            Pinning::None => false,
            Pinning::Each => true,
        };
        Simulation::new(&self.machine)
            .seed(settings.seed)
            .cpus(cpus)
            .pinned(pinned)
            .parking(!self.job.every_turn)
    }
}

/// Of a failure that tells of each thread: the cause and the first thread.
pub(super) fn first_lines(failure: &str) -> String {
    failure.lines().take(2).map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Whether the lock did what a lock is for.
fn verify((outcomes, found): &Left) -> Result<(), String> {
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    match (sum(|outcome| outcome.violations), sum(|outcome| outcome.written)) {
        (0, written) if written == *found => Ok(()),
        (0, written) => Err(format!("the lock lost updates: {written} were made, {found} found")),
        (violations, _) => Err(format!("the lock let two threads in at once, {violations} times")),
    }
}

/// Where time went and how far lines did, from the start of the threads to their end.
pub(super) fn sight<T>(report: &Report<T>, sections: u64) -> BTreeMap<String, f64> {
    let mut sight = BTreeMap::new();
    // The first thread only starts the others and waits for them.
    let threads = || report.threads.iter().skip(1).map(|thread| &thread.times);
    let all = threads().map(|times| times.total()).sum::<u64>().max(1) as f64;
    let used = threads().map(|times| times.cpu.total()).sum::<u64>().max(1) as f64;
    let mut share = |name: &str, part: fn(&manycore_sim::Breakdown) -> u64, of: f64| {
        let sum = threads().map(part).sum::<u64>() as f64;
        sight.insert(name.to_owned(), 100.0 * sum / of);
    };
    share("time_compute", |times| times.compute, all);
    share("time_stall", |times| times.stall, all);
    share("time_lock_spin", |times| times.lock_spin, all);
    share("time_lock_wait", |times| times.lock_wait, all);
    share("time_quiescence_wait", |times| times.quiescence_wait, all);
    share("time_log_work", |times| times.log_work, all);
    share("time_system", |times| times.system, all);
    share("time_ready", |times| times.ready, all);
    share("time_idle", |times| times.idle, all);
    share("cpu_program", |times| times.cpu.program, used);
    share("cpu_locks", |times| times.cpu.locks, used);
    share("cpu_system", |times| times.cpu.system, used);
    let mut each = |name: String, count: u64| {
        sight.insert(name, count as f64 / sections as f64);
    };
    let messages = &report.messages;
    for (distance, count) in messages.transfers.iter().enumerate() {
        each(format!("transfers_{distance}"), *count);
    }
    for (distance, count) in messages.from_memory.iter().enumerate() {
        each(format!("memory_{distance}"), *count);
    }
    each("write_backs".into(), messages.write_backs);
    each("combined".into(), messages.combined);
    sight
}
