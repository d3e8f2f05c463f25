//! `manycore run`: a program with another lock.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use crate::child::end_like;
use crate::failure::{Failure, Result};
use crate::preload::Interposition;
use crate::profile::observe;
use crate::spec::Spec;
use crate::statistics;
use crate::target;
use crate::terminal::Terminal;

const NOTES: &str = "\
Examples:
  manycore run -- memcached -p 11211
  manycore run --lock hybrid:give-up=yield -- mariadbd --socket=/tmp/db.sock
  manycore run --stats -- ./program               (how many locks, how contended;
                                                  `manycore top` attaches to it)
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
  they are the same process. With --stats the program is a child, to which signals
  are handed on, and `manycore run` ends as it did.

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

    /// Say on stderr what the program did with locks, when it has ended
    #[arg(long)]
    stats: bool,

    /// Program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Becomes the program, or with statistics waits for it. Gives its exit status.
pub fn run(options: &Options, terminal: &Terminal) -> Result<u8> {
    target::check(&options.command)?;
    let interposition = Interposition::new(options.lock.clone())?;
    if options.stats {
        return with_statistics(options, &interposition, terminal);
    }
    let mut command = options.command(&interposition, terminal);
    let error = command.exec();
    Err(options.cannot_run(&error))
}

/// Runs the program as a child, and says on stderr what it did with locks.
fn with_statistics(
    options: &Options,
    interposition: &Interposition,
    terminal: &Terminal,
) -> Result<u8> {
    if interposition.lock().is_glibc() {
        return Err(Failure::bad_input(
            "glibc's own lock keeps no statistics",
            "name another lock, or leave out --stats",
        ));
    }
    let (profile, status) = observe(&options.command, interposition, |_| {}, terminal)?;
    terminal.note(statistics::summary(&profile));
    terminal.note(&profile.finding);
    Ok(end_like(status))
}

impl Options {
    fn command(&self, interposition: &Interposition, terminal: &Terminal) -> Command {
        let (program, arguments) = self.command.split_first().expect("clap asks for one");
        let mut command = Command::new(program);
        command.args(arguments);
        interposition.apply(&mut command);
        terminal.say(format_args!("running {command:?}"));
        command
    }

    fn cannot_run(&self, error: &io::Error) -> Failure {
        Failure::bad_input(
            format!("cannot run '{}': {error}", self.command[0].to_string_lossy()),
            "check that it runs without `manycore run`",
        )
    }
}
