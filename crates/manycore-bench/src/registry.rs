//! The workloads that there are: a line each.
//!
//! # A new workload
//!
//! It is a folder and a line in the table below. An index under YCSB, `src/index/`, say:
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | `struct Indexes`, which is a [`Workload`]: names the parts below |
//! | `command.rs` | flags with their help, a [`Benchmark`](crate::front::Benchmark): `NAME` is `index` |
//! | `campaign.rs` | a [`Contest`](crate::campaign::Contest): points, candidates, and the slice of a candidate at a point |
//! | `slice.rs` | a slice: settings, which are an [`Order`](crate::worker::Order), and what executes them |
//! | `simulated.rs` | the same on a simulated machine, a [`SimulatedProgram`](crate::simulated::SimulatedProgram) |
//! | `result.rs`, `render.rs` | from slices to rows; rows as text, and as a picture |
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
//! Transactions, stores and file systems are added in the same way. What cannot run in a process of this executable, such as a
//! server, has no executor: its command starts it.

use std::io;

use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;

use crate::front::{Front, Run};
use crate::workload::Workload;
use crate::{
    accuracy, db, goals, grid, kernel, lock, many, rmap, set, simulated, syscall, uncontended,
    worker,
};

/// All workloads, in the order in which help shows them.
const WORKLOADS: &[&dyn Workload] = &[
    &lock::Locks,
    &many::Many,
    &set::Sets,
    &uncontended::Uncontended,
    &grid::Grid,
    &goals::Goals,
    &db::DatabaseModel,
    &kernel::KernelModel,
    &rmap::ReverseMaps,
    &syscall::ServerModel,
    &accuracy::Accuracy,
];

/// Serves a harness as the worker of this lock, for as long as it has orders.
pub fn serve_worker(lock: &str) -> io::Result<()> {
    worker::serve(WORKLOADS.iter().flat_map(|workload| workload.executors(lock)).collect())
}

/// Simulates for the process at the other end of standard input and output, for as long as it has jobs.
pub fn serve_simulator() -> io::Result<()> {
    let simulators: Vec<_> = WORKLOADS.iter().flat_map(|workload| workload.simulators()).collect();
    simulated::serve(&simulators)
}

/// A command that was chosen: what follows `manycore bench`, or `manycore sim`.
#[derive(Debug)]
pub struct Chosen<const SIMULATED: bool>(Box<dyn Run>);

impl<const SIMULATED: bool> Chosen<SIMULATED> {
    fn fronts() -> impl Iterator<Item = Front> {
        WORKLOADS.iter().flat_map(|workload| match SIMULATED {
            true => workload.simulated(),
            false => workload.measured(),
        })
    }

    /// Runs it.
    pub fn run(&self, terminal: &Terminal) -> Result<()> {
        self.0.run(terminal)
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
