//! The table of workloads: one line each.
//!
//! # A new workload
//!
//! A new workload needs a folder, and a line in the table below. For example, the folder of an
//! index under YCSB, `src/index/`, has:
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | `struct Indexes`, which is a [`Workload`]: names the parts below |
//! | `command.rs` | flags and help, a [`Benchmark`](crate::front::Benchmark): `NAME` is `index` |
//! | `slice.rs` | what executes a slice, in a worker |
//! | `simulated.rs` | simulated, a [`SimulatedProgram`](crate::simulated::SimulatedProgram) |
//! | `result.rs` | points here, a [`NativeGrid`](crate::structure::NativeGrid); their records |
//! | `render.rs`, `picture.rs` | records as text, and as a picture |
//!
//! ```ignore
//! impl Workload for Indexes {
//!     fn measured(&self) -> Vec<Front> {
//!         vec![Front::of::<command::Options>()]
//!     }
//!
//!     fn executors(&self, _: &str) -> Vec<Executor> {
//!         vec![slice::executor()]
//!     }
//! }
//! ```
//!
//! Stores and file systems are added in the same way. A candidate that cannot run in a process of
//! this executable, such as a server, has no executor: its command starts it.

use std::io;

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::Terminal;

use crate::front::{Front, Run};
use crate::workload::Workload;
use crate::{
    accuracy, db, fs, goals, grid, index, kernel, kernel_load, lock, many, mariadb, rmap, set,
    simulated, syscall, syscalls, txn, uncontended, worker,
};

/// All workloads, in the order of the help.
const WORKLOADS: &[&dyn Workload] = &[
    &lock::Locks,
    &many::Many,
    &set::Sets,
    &index::Indexes,
    &txn::Transactions,
    &fs::FileSystems,
    &uncontended::Uncontended,
    &grid::Grid,
    &goals::Goals,
    &db::DatabaseModel,
    &kernel::KernelModel,
    &rmap::ReverseMaps,
    &syscall::ServerModel,
    &accuracy::Accuracy,
    &mariadb::Mariadb,
    &kernel_load::KernelLoad,
    &syscalls::MovedCalls,
];

const BENCH_NOTES: &str = "\
Examples:
  manycore bench lock --threads 1,2,8 --section 50ns,1us
  manycore bench set --structure list --initial 1000 --update 2,20,80
  manycore bench index --workload ycsb-a,ycsb-e --against scc-tree,ferntree
  manycore bench txn --workload tpcc --against rwlock,shards
  manycore bench fs --workload mwcm,storm --threads 1,2
  manycore bench uncontended --preload
  manycore bench grid --quick
  manycore bench rmap --threads 8 --update 50,100
  manycore bench mariadb --lock innodb,hybrid --terminals 50
  manycore bench forks --plot forks.svg
  manycore bench faults --threads 1,2,8 --update 0,50
  manycore bench syscalls --part apache --clients 1,64 --plot apache.svg
";

/// Measure locks and sets without a program around them, a database with them, the kernel's locks,
/// and moved system calls
#[derive(Args, Debug)]
#[command(after_long_help = BENCH_NOTES, disable_help_subcommand = true)]
pub struct Bench {
    #[command(subcommand)]
    chosen: Chosen<false>,
}

const SIM_NOTES: &str = "\
Examples:
  manycore sim lock --machine xeon-e7-8870-8x15 --threads 1,15,120
  manycore sim many --quick
  manycore sim set --machine xeon-8180-8x28x2 --structure hash --threads 56,448
  manycore sim index --machine xeon-8180-8x28x2 --threads 56,448 --workload upsert-20
  manycore sim txn --machine xeon-8180-8x28x2 --threads 56,448 --workload ycsb16
  manycore sim fs --machine xeon-e5-2697-2x18x2 --threads 18,72 --workload mwcm,storm
  manycore sim db --lock innodb,sleep,hybrid
  manycore sim kernel --of threads --threads 30,120
  manycore sim rmap --machine xeon-e7-8870-8x15 --threads 1,30,120
  manycore sim syscall --machine ivybridge-2x10 --clients 16,256
  manycore machines

What may be concluded: which lock is ahead, about where each stops scaling, and
why. Not how many operations a second a machine does.
";

/// Run workloads on simulated machines with many cores
#[derive(Args, Debug)]
#[command(after_long_help = SIM_NOTES, disable_help_subcommand = true)]
pub struct Sim {
    #[command(subcommand)]
    chosen: Chosen<true>,
}

impl Bench {
    /// Measures, and prints what came out.
    pub fn run(&self, terminal: &Terminal) -> Result<()> {
        self.chosen.0.run(terminal)
    }
}

impl Sim {
    /// Simulates, and prints what came out.
    pub fn run(&self, terminal: &Terminal) -> Result<()> {
        self.chosen.0.run(terminal)
    }
}

/// Serves a harness as the worker of this lock, for as long as it has orders.
pub fn serve_worker(lock: &str) -> io::Result<()> {
    worker::serve(WORKLOADS.iter().flat_map(|workload| workload.executors(lock)).collect())
}

/// Simulates for the process at the other end of standard input and output, for as long as it has
/// jobs.
pub fn serve_simulator() -> io::Result<()> {
    let simulators: Vec<_> = WORKLOADS.iter().flat_map(|workload| workload.simulators()).collect();
    simulated::serve(&simulators)
}

/// Runs as the process in which a lock is measured; this command starts it.
#[derive(Args, Debug)]
#[command(hide = true)]
struct WorkerProcess {
    lock: String,
}

impl Run for WorkerProcess {
    fn run(&self, _: &Terminal) -> Result<()> {
        serve_worker(&self.lock).map_err(|error| {
            Failure::failed(format!("the benchmark that this worker serves is gone: {error}"))
        })
    }
}

/// A process that simulates; this command starts it itself.
#[derive(Args, Debug)]
#[command(hide = true)]
struct SimulatorProcess;

impl Run for SimulatorProcess {
    fn run(&self, _: &Terminal) -> Result<()> {
        serve_simulator().map_err(|error| {
            Failure::failed(format!("the simulation that this worker serves is gone: {error}"))
        })
    }
}

/// The chosen command: the words after `manycore bench`, or `manycore sim`.
#[derive(Debug)]
struct Chosen<const SIMULATED: bool>(Box<dyn Run>);

impl<const SIMULATED: bool> Chosen<SIMULATED> {
    fn fronts() -> impl Iterator<Item = Front> {
        let processes = match SIMULATED {
            true => Front::named::<SimulatorProcess>("worker"),
            false => Front::named::<WorkerProcess>("worker"),
        };
        let of_workloads = WORKLOADS.iter().flat_map(|workload| match SIMULATED {
            true => workload.simulated(),
            false => workload.measured(),
        });
        of_workloads.chain([processes])
    }
}

impl<const SIMULATED: bool> FromArgMatches for Chosen<SIMULATED> {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let chosen = matches.subcommand().and_then(|(name, flags)| {
            Some((Self::fronts().find(|front| front.name == name)?, flags))
        });
        match chosen {
            Some((front, flags)) => Ok(Self((front.parse)(flags)?)),
            None => Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand)),
        }
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const SIMULATED: bool> Subcommand for Chosen<SIMULATED> {
    fn augment_subcommands(command: Command) -> Command {
        Self::fronts().fold(command, |command, front| {
            command.subcommand((front.augment)(Command::new(front.name)))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Self::fronts().any(|front| front.name == name)
    }
}
