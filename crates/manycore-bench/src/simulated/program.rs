//! What simulated threads do, of whatever workload.
//!
//! A workload defines its programs ([`SimulatedProgram`]). The process that simulates gets a table
//! of the existing programs ([`Simulator`]), so neither it nor the cache of results knows any
//! workload.

use manycore_sim::Placement;
use manycore_sim::machine::Topology;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::job::{Finding, Job, Program};
use super::run::Run;

/// A program for a simulated machine: its data define its threads' work.
pub(crate) trait SimulatedProgram: Serialize + DeserializeOwned {
    /// The program's name, in jobs and in the names of cached results.
    const NAME: &'static str;

    /// Where the operating system has its threads.
    fn placement(&self, _topology: &Topology, _threads: u32) -> Placement {
        Placement::Compact
    }

    /// Simulates one job in this process. The error tells in a line why there is no result.
    fn simulate(&self, run: &Run) -> Result<Finding, String>;
}

impl Program {
    /// To be put into a job.
    pub fn of<P: SimulatedProgram>(program: &P) -> Self {
        let data = serde_json::to_string(program).expect("a program is plain data");
        Self::new(P::NAME, &data)
    }
}

/// What simulates the jobs of one program.
#[derive(Clone, Copy, Debug)]
pub struct Simulator {
    name: &'static str,
    simulate: fn(&Job) -> Result<Finding, String>,
}

impl Simulator {
    /// The entry of this program.
    pub(crate) const fn of<P: SimulatedProgram>() -> Self {
        Self { name: P::NAME, simulate: simulate::<P> }
    }
}

/// Simulates a job, by the simulator of its program.
pub(crate) fn run(job: &Job, simulators: &[Simulator]) -> Result<Finding, String> {
    let name = job.program.name();
    let simulator = simulators.iter().find(|simulator| simulator.name == name);
    (simulator.ok_or_else(|| format!("there is no program `{name}` to simulate"))?.simulate)(job)
}

/// Simulates a job of this program in this process.
pub(crate) fn simulate<P: SimulatedProgram>(job: &Job) -> Result<Finding, String> {
    let program: P = serde_json::from_str(job.program.data())
        .map_err(|error| format!("the worker got a program that it cannot read: {error}"))?;
    let run = Run::new(job, |topology| program.placement(topology, job.threads))?;
    program.simulate(&run)
}
