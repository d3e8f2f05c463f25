//! A job on its machine, and what is seen of it.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use manycore_sim::machine::Topology;
use manycore_sim::{Machine, Model, Placement, Report, Simulation};
use manycore_simulated::sync::tuning;

use super::job::Job;
use super::window::Window;
use crate::slice::{Pinning, Slice};
use crate::waits::Waits;

/// A job on its machine.
pub(crate) struct Run<'a> {
    pub job: &'a Job,
    pub machine: Machine,
    placement: Placement,
}

impl<'a> Run<'a> {
    /// The machine is made after the job's model.
    pub fn new(
        job: &'a Job,
        placement: impl FnOnce(&Topology) -> Placement,
    ) -> Result<Self, String> {
        let model = Model::parse("model", &job.machine).map_err(|problem| problem.to_string())?;
        let machine = model.machine();
        let placement = placement(&machine.topology);
        Ok(Self { job, machine, placement })
    }

    /// How many cycles take a nanosecond.
    pub fn ghz(&self) -> f64 {
        self.machine.core.ghz
    }

    /// The counted window of time, for threads that start at this number of cycles.
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
        let simulation = Simulation::new(&self.machine)
            .placement(self.placement.clone())
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

    /// The same values as from a native slice: each thread's operations in the counted time, and
    /// the times that threads recorded, in cycles.
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

/// The first lines of a failure, which describes each thread: the cause and the first thread.
fn first_lines(failure: &str) -> String {
    failure.lines().take(2).map(str::trim).collect::<Vec<_>>().join("; ")
}

/// Where time went and how far lines moved, from the start of the threads to their end.
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
