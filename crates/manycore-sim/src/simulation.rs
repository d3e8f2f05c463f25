//! A simulation: its machine, the placement of its threads, and its results.

use crate::coherence::{MemoryPolicy, Messages};
use crate::engine::{self, Breakdown, Engine, Failure, Policy, Stall};
use crate::machine::{Cycles, Machine};

/// The CPUs on which threads are put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Socket by socket, one thread to a core; then the siblings.
    Compact,
    /// Over the sockets in turn, one thread to a core; then the siblings.
    Scatter,
    /// These CPUs, in this order.
    Cpus(Vec<u32>),
}

impl Placement {
    pub(crate) fn cpus(&self, machine: &Machine) -> Vec<u32> {
        let topology = &machine.topology;
        match self {
            Self::Compact => (0..topology.cpus()).collect(),
            Self::Scatter => {
                let mut cpus: Vec<_> = (0..topology.cpus()).collect();
                let in_core_order = |cpu: u32| {
                    let core = topology.core_of(cpu);
                    (cpu / topology.cores(), core % topology.cores_per_socket, core)
                };
                cpus.sort_by_key(|cpu| in_core_order(*cpu));
                cpus
            }
            Self::Cpus(cpus) => cpus.clone(),
        }
    }
}

/// A simulation's settings.
#[derive(Clone, Debug)]
pub struct Simulation {
    machine: Machine,
    seed: u64,
    placement: Placement,
    cpus: Option<u32>,
    pinned: bool,
    parking: bool,
    memory: MemoryPolicy,
    stalls: Vec<Stall>,
    patience: Cycles,
}

/// The results of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report<R> {
    /// What the program returned.
    pub result: R,
    /// The name of the machine.
    pub machine: String,
    /// The seed.
    pub seed: u64,
    /// The time for which the program ran, in cycles.
    pub cycles: Cycles,
    /// Its threads, in the order of creation; the first is the program's main thread.
    pub threads: Vec<ThreadReport>,
    /// How lines moved.
    pub messages: Messages,
}

/// The results of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// The time at which it was started, in cycles.
    pub started: Cycles,
    /// The time at which it ended.
    pub finished: Cycles,
    /// The number of its accesses to memory that the simulator saw. Parked iterations of a polling
    /// loop make none.
    pub accesses: u64,
    /// The thread's time, by activity.
    pub times: Breakdown,
}

impl<R> Report<R> {
    /// The number of accesses of all threads.
    pub fn accesses(&self) -> u64 {
        self.threads.iter().map(|thread| thread.accesses).sum()
    }
}

impl Simulation {
    /// A simulation of a machine, with seed 1, threads pinned compactly.
    pub fn new(machine: &Machine) -> Self {
        Self {
            machine: machine.clone(),
            seed: 1,
            placement: Placement::Compact,
            cpus: None,
            pinned: true,
            parking: true,
            memory: MemoryPolicy::FirstTouch,
            stalls: Vec::new(),
            patience: 1 << 30,
        }
    }

    /// Sets the seed of random choices: the moment in an iteration of a polling loop at which it
    /// notices a change.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the CPUs on which threads are put.
    pub fn placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets how many CPUs of the placement the program may use; all if this is not called. Threads
    /// are dealt out to these.
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// Sets whether threads stay on their first CPU (the default), or may move to an idle one.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Sets whether spinning threads are parked (the default), or each iteration is simulated. The
    /// latter is slow, and serves to check the former.
    pub fn parking(mut self, parking: bool) -> Self {
        self.parking = parking;
        self
    }

    /// Sets the nodes that have the pages' memory.
    pub fn memory(mut self, policy: MemoryPolicy) -> Self {
        self.memory = policy;
        self
    }

    /// Takes a thread off its CPU at a certain access, for a time. The main thread is 0. Each
    /// thread can have one stall.
    pub fn stall(mut self, stall: Stall) -> Self {
        self.stalls.push(stall);
        self
    }

    /// Sets for how many cycles threads may do nothing but wait. After that the simulation fails
    /// with a livelock.
    pub fn patience(mut self, cycles: Cycles) -> Self {
        self.patience = cycles;
        self
    }

    /// Runs a program. Other simulations of this process wait meanwhile.
    ///
    /// The program's result is cloned, so that it does not refer to simulated memory.
    ///
    /// # Errors
    ///
    /// If a thread of the program panics, or the program gets stuck.
    pub fn run<R: Clone>(&self, program: impl FnOnce() -> R) -> Result<Report<R>, Failure> {
        let mut engine = Engine::new(&self.machine, self.seed, Policy::Timed);
        self.configure(&mut engine);
        let mut result = None;
        engine::run(&mut engine, || result = Some(program()));
        let returned = result.clone();
        drop(result);
        if engine.failure.is_some() {
            return Err(engine.into_failure().expect("it has failed"));
        }
        let threads = engine.threads.iter().map(|thread| ThreadReport {
            started: thread.started,
            finished: thread.finished,
            accesses: thread.accesses,
            times: thread.times.breakdown(),
        });
        Ok(Report {
            result: returned.expect("the main thread has ended"),
            machine: self.machine.name.clone(),
            seed: self.seed,
            cycles: engine.threads.iter().map(|thread| thread.finished).max().unwrap_or(0),
            threads: threads.collect(),
            messages: engine.coherence.messages().clone(),
        })
    }

    fn configure(&self, engine: &mut Engine) {
        let mut cpus = self.placement.cpus(&self.machine);
        cpus.truncate(self.cpus.map_or(usize::MAX, |cpus| cpus as usize));
        engine.allow(cpus, self.pinned);
        engine.parking = self.parking;
        engine.patience = self.patience;
        engine.stalls.clone_from(&self.stalls);
        engine.coherence.policy = self.memory;
    }
}
