//! The command line: its commands, and their names.

use clap::{Args, Parser, Subcommand};

#[cfg(feature = "every-command")]
use crate::store;
use crate::{demo, diff, locks, manual, profile, report, run};

const NOTES: &str = "\
Examples:
  manycore locks
  manycore run --lock futex -- memcached -p 11211
  manycore compare -- kccachetest order -th 8 -rnd 100000

Exit status:
  0   done
  1   what was measured failed: a program, or a claim
  2   bad usage: one line on stderr names the culprit and the remedy
  `run` and `profile` pass on the exit status of their program.

Environment:
  MANYCORE_PRELOAD   the preload library; without it, libmanycore_preload.so is
                     looked for beside the command and in ../lib/manycore; a command
                     that carries it unpacks it into XDG_CACHE_HOME (of root,
                     /var/cache)
  MANYCORE_SYSCALLS_PRELOAD
                     likewise, the library for system calls,
                     libmanycore_syscalls.so
  NO_COLOR           no colours if it is set and not empty
  TMPDIR             where programs under test get their directories
  XDG_CACHE_HOME     where `sim` keeps results, and libraries are unpacked; without
                     it, ~/.cache
";

/// Find what keeps a program from scaling, and run it with better locks
#[derive(Parser, Debug)]
#[command(name = "manycore", version, after_long_help = NOTES, disable_help_subcommand = true)]
pub struct Cli {
    /// For all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Common options")]
pub struct Global {
    /// Say nothing but the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say what is done
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
#[allow(
    missing_docs,
    reason = "each is documented where its options are, and a doc here would replace that in --help"
)]
pub enum Command {
    Demo(demo::Options),
    Run(run::Options),
    Profile(profile::Options),
    #[cfg(feature = "every-command")]
    Top(manycore_top::Options),
    Report(report::Options),
    Diff(diff::Options),
    Compare(manycore_compare::Options),
    #[cfg(feature = "every-command")]
    Bench(manycore_bench::Bench),
    #[cfg(feature = "every-command")]
    Sim(manycore_bench::Sim),
    #[cfg(feature = "every-command")]
    Predict(manycore_bench::predict::command::Options),
    #[cfg(feature = "every-command")]
    Figures(manycore_figures::command::Options),
    #[cfg(feature = "every-command")]
    Store(store::Options),
    Locks(locks::Options),
    #[cfg(feature = "every-command")]
    Machines(manycore_bench::machines::Options),
    Completions(manual::CompletionOptions),
    Man(manual::ManOptions),
}
