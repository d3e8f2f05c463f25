//! The options of every measurement and of every simulation of a structure.

use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

use super::{Grid, NativeOptions, SimulatedOptions, run};
use crate::front::{Pin, SimulatorOptions, SliceOptions, say_troubles, worker_command};
use crate::machines;
use crate::run_records::RunRecords;

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
    /// Operations of each thread, whose total time is then not limited
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    operations: Option<u64>,
    /// CPUs of the threads
    #[arg(long, value_enum, default_value = "auto")]
    pin: Pin,
    /// Vary the unknown properties of the machine, and show the range of results: 18 simulations
    /// each
    #[arg(long)]
    sweep: bool,
}

impl MachineFlags {
    /// Simulates the workload on this machine; also returns the machine's name. Simulators are
    /// started once the machine has been found.
    pub fn simulate<G: Grid + Default>(
        &self,
        how: &RunFlags,
        workload: G,
        pool: &SimulatorOptions,
        terminal: &Terminal,
    ) -> Result<(String, RunRecords)> {
        let options = SimulatedOptions {
            cpus: self.cpus,
            workload,
            duration: how.duration,
            operations: how.operations,
            pinning: how.pin.pinning(),
            sweep: how.sweep,
            ..SimulatedOptions::new(machines::find(&self.machine)?, pool.start(terminal)?)
        };
        let found = run(&options)?;
        say_troubles(&options.pool, terminal);
        Ok((options.machine.name, found))
    }
}

impl<G: Default> NativeOptions<G> {
    /// The workload on this host, as these flags say.
    pub(crate) fn of_flags(
        workload: G,
        against: &[String],
        slices: &SliceOptions,
        operations: Option<u64>,
        terminal: &Terminal,
    ) -> Result<Self> {
        Ok(Self {
            workload,
            against: against.to_vec(),
            slice: slices.slice,
            operations,
            rounds: slices.rounds(),
            pinning: slices.pinning(),
            progress: terminal.shows_progress(),
            ..Self::new(worker_command()?)
        })
    }
}
