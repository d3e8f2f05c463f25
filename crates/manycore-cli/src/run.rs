//! `manycore run`: a program with another lock.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::preload::Interposition;
use crate::spec::Spec;
use crate::target;
use crate::terminal::Terminal;

/// Shown below the options.
pub const NOTES: &str = "\
Examples:
  manycore run -- memcached -p 11211
  manycore run --lock hybrid:give-up=yield -- mariadbd --socket=/tmp/db.sock
  manycore run --lock glibc -- ./program          (as it is)

Locks:
  NAME[:KEY=VALUE]...   `manycore locks` lists the names; the keys are
  rounds=N              how often a spinning lock looks before it blocks
  delay=N               how long it waits between two looks
  give-up=sleep|yield   how it gives up the CPU

Exit status:
  The program's own. 2 if it cannot be run with another lock: it is not found,
  statically linked, setuid, for another machine or another C library. The line
  on stderr says what to do. A signal to `manycore run` is one to the program:
  they are the same process.

Environment:
  MANYCORE_PRELOAD   the preload library, instead of the one beside the command
  LD_PRELOAD         what is preloaded already stays, behind the library
";

/// Run a program with another lock in place of its pthread mutexes
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Lock to put into the program; `glibc` leaves it as it is
    #[arg(long, value_name = "SPEC", default_value_t = Spec::usual())]
    lock: Spec,

    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Becomes the program; returns only if that is not possible.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    target::check(&options.command)?;
    let interposition = Interposition::new(options.lock.clone())?;
    let (program, arguments) = options.command.split_first().expect("clap asks for one");
    let mut command = Command::new(program);
    command.args(arguments);
    interposition.apply(&mut command);
    terminal.say(format_args!("running {command:?}"));
    let error = command.exec();
    Err(Failure::bad_input(
        format!("cannot run '{}': {error}", program.to_string_lossy()),
        "check that it runs without `manycore run`",
    ))
}
