//! `manycore run`: a program with another lock, or with its system calls on other CPUs.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;
use manycore_placement::Request;

use crate::calls::{self, Calls};
use manycore_launch::child::end_like;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::{Inbox, keep_ignored_pipe};
use manycore_launch::spec::Spec;
use manycore_launch::target;
use manycore_launch::terminal::{Terminal, print};
use manycore_profile::record::observe;
use manycore_profile::render::{summary, system_calls, table};

const NOTES: &str = "\
Examples:
  manycore run -- memcached -p 11211
  manycore run --lock hybrid:give-up=yield -- mariadbd --socket=/tmp/db.sock
  manycore run --stats -- ./program               (how many locks, how contended;
                                                  `manycore top` attaches to it)
  manycore run --lock glibc -- ./program          (as it is)
  manycore run --syscalls nic-llc -- apache2 -X   (calls on sockets are executed near
                                                  the network card)
  manycore run --syscalls auto --explain          (which CPUs those are, and why)
  manycore run --syscalls nic-llc --stats -- curl http://localhost/
                                                  (what was moved, and what was not)

Locks:
  NAME[:KEY=VALUE]...   `manycore locks` lists the names; the keys are
  rounds=N              how often a spinning lock looks before it blocks
  delay=N               how long it waits between two looks
  give-up=sleep|yield   how it gives up the CPU
  few-cpus=N            on how many CPUs waiters of `adaptive` do without a queue

System calls:
  POLICY[:KEY=VALUE]... where calls on sockets are executed:
  nic-llc               on the CPUs that share the last-level cache with those that
                        serve the network card's interrupts, in turn
  single-node           on the memory node of the card
  cross-node            likewise, and on the next nodes when there are many sockets
  per-node              on the node of the thread that opened the socket
  auto                  as suits the machine; where moving them cannot help, in place:
                        the program runs as it is
  mechanism=pool        by a few threads a CPU; `thread`: one for each socket;
                        `uring`: by the kernel's; `in-place`: by the caller
  device=NIC            the network card, instead of the default route's
  threshold=N           of cross-node: sockets a CPU before the next node [default: 8]
  cpus=LIST             choose among these CPUs only, as in 0-3,8
  files=yes|no          calls on files, too [default: no]
  bypass=yes|no         in place where moving is measured to cost more than it saves
                        [default: yes with auto, otherwise no]

Exit status:
  The program's own. 2 if it cannot be run so: it is not found, statically
  linked, setuid, for another machine or another C library; or there is no such
  lock, policy, network card or CPU. The line on stderr says what to do. A signal to `manycore run` is one to the program:
  they are the same process. With --stats the program is a child, to which signals
  are handed on, and `manycore run` ends as it did.

Environment:
  MANYCORE_PRELOAD            the preload library, instead of the one beside the command
  MANYCORE_SYSCALLS_PRELOAD   likewise, the library for system calls
  LD_PRELOAD                  what is preloaded already stays, behind the libraries
";

/// Run a program with another lock in place of its pthread mutexes, or its system calls on other
/// CPUs
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Lock to put into the program; `glibc` leaves it as it is [default: adaptive; glibc with
    /// --syscalls]
    #[arg(long, value_name = "SPEC")]
    lock: Option<Spec>,

    /// Execute the program's calls on sockets on CPUs that this policy chooses
    #[arg(long, value_name = "POLICY", value_parser = calls::request)]
    syscalls: Option<Request>,

    /// Say which CPUs the policy chooses and why: on stdout, or with a program on stderr
    #[arg(long, requires = "syscalls")]
    explain: bool,

    /// Print that as JSON; and the results for system calls, with --stats
    #[arg(long)]
    json: bool,

    /// Print on stderr, at the end, how the program used the lock, and with --syscalls which of its
    /// calls were moved
    #[arg(long)]
    stats: bool,

    /// Program and its arguments
    #[arg(required_unless_present = "explain", trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Becomes the program, or with statistics waits for it. Returns its exit status.
pub fn run(options: &Options, terminal: &Terminal) -> Result<u8> {
    let says_calls = options.stats && options.syscalls.is_some();
    if options.json && !options.explain && !says_calls {
        return Err(Failure::bad_input(
            "--json is for --explain, and for --stats with --syscalls",
            "add one of them, or leave it out",
        ));
    }
    if options.json && options.explain && says_calls {
        return Err(Failure::bad_input(
            "--json would print two documents, one for --explain and one for --stats",
            "let --explain be a run by itself, without CMD",
        ));
    }
    let calls = options.syscalls.as_ref().map(Calls::choose).transpose()?;
    if let Some(calls) = calls.as_ref().filter(|_| options.explain) {
        let text = calls.explain(options.json);
        if options.command.is_empty() {
            print(&text)?;
            return Ok(0);
        }
        // A user that has closed stderr does not want the message; the program is run all the same.
        _ = io::stderr().write_all(text.as_bytes());
    }
    target::check(&options.command)?;
    let mut interposition = Interposition::new(options.lock())?;
    if let Some(calls) = calls.filter(|calls| options.stats || !calls.leaves_alone()) {
        interposition = calls.under(interposition)?;
    }
    if options.stats {
        return with_statistics(options, &interposition, terminal);
    }
    let mut command = options.command(&interposition, terminal);
    let error = command.exec();
    Err(options.cannot_run(&error))
}

/// Runs the program as a child, and reports on stderr how it used locks and which of its system
/// calls were moved.
fn with_statistics(
    options: &Options,
    interposition: &Interposition,
    terminal: &Terminal,
) -> Result<u8> {
    let has_lock = !interposition.lock().is_glibc();
    if !has_lock && options.syscalls.is_none() {
        return Err(Failure::bad_input(
            "glibc's own lock keeps no statistics",
            "name another lock, or leave out --stats",
        ));
    }
    let mut inbox = Inbox::to_hand_on()?;
    let (profile, status) =
        observe(&options.command, interposition, |_| (), Default::default(), &mut inbox, terminal)?;
    if has_lock {
        terminal.note(summary::line(&profile));
        terminal.note(&profile.finding);
    }
    let outsiders = table::outsiders(&profile.not_interposed);
    if !outsiders.is_empty() {
        terminal.note(outsiders.trim_end());
    }
    if let Some(calls) = &profile.system_calls {
        match options.json {
            true => eprintln!("{}", serde_json::to_string(calls).expect("numbers and names")),
            false => terminal.note(system_calls::text(calls)),
        }
    }
    Ok(end_like(status))
}

impl Options {
    /// The requested lock. The default with moved system calls is glibc's, so that only one thing
    /// changes at a time.
    fn lock(&self) -> Spec {
        let usual = || if self.syscalls.is_some() { Spec::glibc() } else { Spec::usual() };
        self.lock.clone().unwrap_or_else(usual)
    }

    fn command(&self, interposition: &Interposition, terminal: &Terminal) -> Command {
        let (program, arguments) = self.command.split_first().expect("clap asks for one");
        let mut command = Command::new(program);
        command.args(arguments);
        interposition.apply(&mut command);
        keep_ignored_pipe(&mut command);
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
