//! One simulation: what determines its result, and the result.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use manycore_sim::{Machine, Model, Placement, Report, Simulation};
use manycore_simulated::sync::tuning;
use serde::{Deserialize, Serialize};

use super::cache::hash;
use crate::accuracy::machines::batch::{self, Batch};
use crate::lock::sections;
use crate::lock::stage::Window;
use crate::mix::Mix;
use crate::rmap::{self, Load};
use crate::set::simulated as set;
use crate::slice::{Pinning, Slice};
use crate::syscall::Assumptions;
use crate::waits::Waits;
use crate::{kernel, syscall};

/// All that determines the result of a simulation, but for the simulator itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The machine's model, as the text of its file.
    pub machine: String,
    /// How many of its CPUs the program may use; all if nothing is said.
    pub cpus: Option<u32>,
    /// The name of the lock, or of another mechanism.
    pub mechanism: String,
    /// How many threads there are, beside the one that starts them.
    pub threads: u32,
    /// What they do.
    pub program: Program,
    /// Simulated time that is counted; before it goes a fifth of it that is not.
    pub measured: Duration,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// What everything is drawn by.
    pub seed: u64,
    /// Whether each turn of a polling loop is simulated.
    pub every_turn: bool,
    /// Whether waiters of queue locks spin for as long as it takes.
    pub patient: bool,
}

/// What threads do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Program {
    /// Sections under locks.
    Sections(Mix),
    /// A number of acquisitions of a lock, as fast as it goes.
    Batch(Batch),
    /// Operations of a set.
    Set(set::Load),
    /// Operations of trees of intervals; the number is the share of those that update, in percent.
    ReverseMap(Load, f64, Beside),
    /// Requests of a server whose system calls are executed here or there.
    Server(Assumptions),
    /// Threads that call a kernel with several locks.
    Kernel(kernel::Load),
}

/// What an operation takes beside its accesses to what is shared: drawing it, the loop, calls, comparisons, allocation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// One that only reads, in nanoseconds.
    pub read_ns: f64,
    /// One that updates.
    pub update_ns: f64,
}

impl Beside {
    /// The same for all operations.
    pub const fn each(ns: f64) -> Self {
        Self { read_ns: ns, update_ns: ns }
    }

    /// Of an operation.
    pub(crate) fn ns(&self, updates: bool) -> f64 {
        if updates { self.update_ns } else { self.read_ns }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What a native slice would have measured.
    pub slice: Slice,
    /// What only a simulator sees, and what the mechanism counted, by the name of the metric: shares of time in percent,
    /// messages for each section.
    pub sight: BTreeMap<String, f64>,
}

impl Job {
    /// A name that no other job has: 128 bits of all that it is.
    pub fn key(&self) -> String {
        hash(serde_json::to_string(self).expect("a job is plain data").as_bytes())
    }

    /// Jobs of a kind take about as long for each simulated second of a thread.
    pub fn kind(&self) -> String {
        let program = match self.program {
            Program::Sections(_) => "sections",
            Program::Batch(_) => "batch",
            Program::Set(..) => "set",
            Program::ReverseMap(..) => "rmap",
            Program::Server(..) => "server",
            Program::Kernel(..) => "kernel",
        };
        format!("{program}/{}", self.mechanism)
    }

    /// Simulated seconds of all threads.
    pub fn thread_seconds(&self) -> f64 {
        f64::from(self.threads) * self.measured.as_secs_f64()
    }

    /// Runs the simulation in this process. The error says in a line why there is no result.
    pub fn run(&self) -> Result<Finding, String> {
        let model = Model::parse("model", &self.machine).map_err(|problem| problem.to_string())?;
        let run = Run { job: self, machine: model.machine() };
        match &self.program {
            Program::Sections(mix) => sections::simulate(&run, mix),
            Program::Batch(batch) => batch::simulate(&run, batch),
            Program::Set(load) => set::simulate(&run, load),
            Program::ReverseMap(load, update, beside) => {
                rmap::simulate_job(&run, load, *update, *beside)
            }
            Program::Server(assumed) => syscall::simulate(&run, assumed),
            Program::Kernel(load) => kernel::simulate(&run, load),
        }
    }
}

/// A job on its machine.
pub(crate) struct Run<'a> {
    pub job: &'a Job,
    pub machine: Machine,
}

impl Run<'_> {
    /// So many cycles take a nanosecond.
    pub fn ghz(&self) -> f64 {
        self.machine.core.ghz
    }

    /// What is counted of threads that start now, at this number of cycles.
    pub fn window(&self, now: u64) -> Window {
        let cycles = |time: Duration| (time.as_nanos() as f64 * self.ghz()) as u64;
        let begin = now + cycles(self.job.measured / 5);
        Window { begin, end: begin + cycles(self.job.measured) }
    }

    /// Runs the simulated program.
    pub fn simulate<T: Clone>(&self, program: impl FnOnce() -> T) -> Result<Report<T>, String> {
        let job = self.job;
        let cpus = job.cpus.unwrap_or(u32::MAX).min(self.machine.topology.cpus());
        let pinned = match job.pinning {
            Pinning::Auto => job.threads <= cpus,
            Pinning::None => false,
            Pinning::Each => true,
        };
        let placement = match job.program {
            Program::Batch(_) => batch::placement(&self.machine.topology, job.threads),
            _ => Placement::Compact,
        };
        let simulation = Simulation::new(&self.machine)
            .placement(placement)
            .seed(job.seed)
            .cpus(cpus)
            .pinned(pinned)
            .parking(!job.every_turn);
        let report = simulation.run(|| {
            if job.patient {
                tuning::set_spin_limit(u32::MAX);
            }
            program()
        });
        report.map_err(|failure| first_lines(&failure.to_string()))
    }

    /// What a native slice would have measured: with what each thread did in the time that is counted, and the times that
    /// threads recorded, in cycles.
    pub fn slice<'h>(
        &self,
        window: Window,
        counts: Vec<u64>,
        times: impl Iterator<Item = &'h Histogram<u64>>,
    ) -> Slice {
        let mut waits = Waits::default();
        times.for_each(|times| waits.add_ticks(times, 1.0 / self.ghz()));
        let elapsed_ns = (window.end - window.begin) as f64 / self.ghz();
        Slice { counts, elapsed_ns, waits, stuck: 0 }
    }
}

/// Of a failure that tells of each thread: the cause and the first thread.
fn first_lines(failure: &str) -> String {
    failure.lines().take(2).map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Where time went and how far lines did, from the start of the threads to their end.
pub(crate) fn sight<T>(report: &Report<T>, sections: u64) -> BTreeMap<String, f64> {
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
    share("cpu_quiescence", |times| times.cpu.quiescence, used);
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
