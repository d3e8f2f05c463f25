//! A batch: tasks acquire one lock a given number of times in all, as fast as they can. A pool of
//! threads runs the tasks.
//!
//! A published study has measured mutexes on many machines with this program. Under the lock, a
//! task looks up an entry of a small hash map and increments it. The lock's word, the count of all
//! updates and the address of the map share a line, as in an object that contains its lock. The
//! map's values take further lines. The count determines which entry is next.

use std::cell::Cell;

use manycore_sim::machine::Topology;
use manycore_sim::{Placement, thread};
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::sync::{CachePadded, tuning};
use serde::{Deserialize, Serialize};

use crate::contender::{self, Contender, Visitor};
use crate::simulated::{Finding, Run, SimulatedProgram, sight};
use crate::slice::Slice;
use crate::waits::Waits;

/// The settings of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// The number of acquisitions of all tasks.
    pub acquisitions: u32,
    /// The number of tasks, which share the acquisitions evenly. It may exceed the number of
    /// threads.
    pub tasks: u32,
    /// The computation in a section, without its accesses.
    pub section_ns: f64,
    /// The number of entries of the map.
    pub entries: u32,
}

/// The number of values in a line of a map that is at most two thirds full.
const ENTRIES_A_LINE: u32 = 4;

/// The CPUs on which Linux puts threads that come and go. As long as no more than an eighth of the
/// machine's CPUs are busy, it uses one node (`imb_numa_nr` of kernel/sched/topology.c); with more,
/// it spreads them evenly over all nodes. A woken thread stays among the CPUs that share a last
/// level of cache with the waking thread, while one of them is idle. So threads fill one group of
/// cores of a node after the other, one thread to a core.
fn placement(topology: &Topology, threads: u32) -> Placement {
    let cpus: Vec<u32> = (0..topology.cpus()).collect();
    if threads <= topology.cpus() / 8 {
        return Placement::Cpus(cpus);
    }
    let mut order: Vec<(u32, u32, u32, u32)> = Vec::new();
    let mut seen = vec![0; topology.nodes() as usize];
    for cpu in cpus {
        let node = topology.node_of(topology.socket_of(topology.core_of(cpu)));
        let place = &mut seen[node as usize];
        order.push((cpu / topology.cores(), *place, node, cpu));
        *place += 1;
    }
    order.sort_unstable();
    Placement::Cpus(order.into_iter().map(|(.., cpu)| cpu).collect())
}

/// What the lock protects.
struct Map {
    values: Box<[CachePadded<UnsafeCell<u64>>]>,
    entries: u32,
}

impl Map {
    fn new(entries: u32) -> Self {
        let lines = 0..entries.div_ceil(ENTRIES_A_LINE);
        Self { values: lines.map(|_| CachePadded(UnsafeCell::default())).collect(), entries }
    }

    /// Increments the entry that the count selects.
    fn update(&self, total: u64) {
        let key = total % u64::from(self.entries);
        // Fibonacci hashing spreads consecutive keys over the map.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let value = &self.values[hash as usize % self.values.len()];
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access. Another thread in the section would show in the sum.
        let count = value.with(|value| unsafe { *value });
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        value.with_mut(|value| unsafe { *value = count + 1 });
    }

    fn sum(&self) -> u64 {
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        self.values.iter().map(|value| value.with(|value| unsafe { *value })).sum()
    }
}

/// The lock, and the other data in its line.
#[repr(C, align(128))]
struct Shared<C> {
    lock: C,
    total: UnsafeCell<u64>,
}

/// Runs a batch with one kind of lock. Returns the wall time in cycles, each thread's acquisitions,
/// and the number of updates.
type Runner = fn(&Batch, u32, f64) -> (u64, Vec<u64>, u64);

struct Chooser;

impl Visitor for Chooser {
    type Output = Runner;

    fn visit<C: Contender>(self) -> Runner {
        run::<C>
    }
}

fn run<C: Contender>(batch: &Batch, threads: u32, ghz: f64) -> (u64, Vec<u64>, u64) {
    let shared = Box::new(Shared::<C> { lock: C::new(), total: UnsafeCell::default() });
    let map = Map::new(batch.entries);
    let section = (batch.section_ns * ghz).round() as u64;
    let each = batch.acquisitions / batch.tasks;
    // The pool's own bookkeeping is not part of the measurement.
    let tasks = Cell::new(batch.tasks);
    let take = || tasks.replace(tasks.get().saturating_sub(1)) > 0;
    // The first call measures the cost. It must not happen within the batch.
    tuning::pause_cost();
    let start = thread::now();
    let ends = thread::parallel(threads, |_| {
        let mut done = 0;
        while take() {
            for _ in 0..each {
                shared.lock.exclusive(|| {
                    // SAFETY: all simulated threads are one thread of the host, and none stops
                    // within this access. Another thread in the section would show in the sum.
                    let total = shared.total.with(|total| unsafe { *total });
                    thread::compute(section);
                    map.update(total);
                    // SAFETY: all simulated threads are one thread of the host, and none stops
                    // within this access. Another thread in the section would show in the sum.
                    shared.total.with_mut(|at| unsafe { *at = total + 1 });
                });
                done += 1;
            }
        }
        (thread::now(), done)
    });
    let end = ends.iter().map(|(end, _)| *end).max().unwrap_or(start);
    (end - start, ends.into_iter().map(|(_, done)| done).collect(), map.sum())
}

impl SimulatedProgram for Batch {
    const NAME: &'static str = "Batch";

    fn placement(&self, topology: &Topology, threads: u32) -> Placement {
        placement(topology, threads)
    }

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

/// Runs a batch. The finding has its wall time, and the acquisitions of each thread.
fn simulate(run: &Run, batch: &Batch) -> Result<Finding, String> {
    let job = run.job;
    let runner = contender::simulated::with(&job.mechanism, Chooser)
        .ok_or_else(|| format!("there is no lock `{}` that can be simulated", job.mechanism))?;
    let report = run.simulate(|| runner(batch, job.threads, run.ghz()))?;
    let (cycles, counts, updates) = &report.result;
    let acquisitions: u64 = counts.iter().sum();
    if acquisitions != *updates {
        return Err(format!(
            "the lock lost updates: the threads made {acquisitions}, and the data shows {updates}"
        ));
    }
    let slice = Slice {
        counts: counts.clone(),
        elapsed_ns: *cycles as f64 / run.ghz(),
        waits: Waits::default(),
        stuck: 0,
    };
    Ok(Finding { slice, sight: sight(&report, acquisitions.max(1)) })
}
