//! What can be asked of every simulation of a structure.

use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use manycore_launch::failure::Result;

use super::SimulatedOptions;
use crate::front::Pin;
use crate::machines;
use crate::simulated::SimulatorPool;

/// Where.
#[derive(Args, Debug)]
pub(crate) struct MachineFlags {
    /// The machine: a name of `manycore machines`, or the file of a model
    #[arg(long, value_name = "NAME")]
    machine: String,
    /// How many of the machine's CPUs the threads may use [default: all]
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
}

/// For how long, and how.
#[derive(Args, Debug)]
pub(crate) struct RunFlags {
    /// Simulated time that is counted
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_duration)]
    duration: Duration,
    /// Operations of each thread, which then take as long as they take
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    operations: Option<u64>,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
    /// Vary what nobody knows about the machine, and show the range of results: 18 simulations each
    #[arg(long)]
    sweep: bool,
}

impl MachineFlags {
    /// The workload on this machine. The pool is started when the machine has been found.
    pub fn options<G: Default>(
        &self,
        run: &RunFlags,
        workload: G,
        pool: impl FnOnce() -> Result<SimulatorPool>,
    ) -> Result<SimulatedOptions<G>> {
        Ok(SimulatedOptions {
            cpus: self.cpus,
            workload,
            duration: run.duration,
            operations: run.operations,
            pinning: run.pin.pinning(),
            sweep: run.sweep,
            ..SimulatedOptions::new(machines::find(&self.machine)?, pool()?)
        })
    }
}
