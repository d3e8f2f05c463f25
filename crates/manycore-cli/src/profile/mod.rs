//! `manycore profile`: which locks cost what, and where.

pub mod kernel;
pub mod output;
mod samples;

use std::ffi::OsString;

use clap::Args;
use manycore_kernel_trace::Scope;
use manycore_placement::Request;

use kernel::KernelOptions;
use samples::Rate;

use manycore_profile::profile::Profile;
use manycore_profile::record::{Beside, CacheMissCounters, observe};
use manycore_profile::render::{Sort, View, table};

use crate::calls::{self, Calls};
use manycore_launch::child::end_like;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::spec::Spec;
use manycore_launch::target;
use manycore_launch::terminal::Terminal;
use output::{Destination, Forms, OpenForms, Output};

/// Shown below the options.
const NOTES: &str = "\
Examples:
  manycore profile -- kccachetest order -th 8 -rnd 100000
  manycore profile --json prof.json -- memcached -p 11211     (ends with ^C)
  manycore profile --html prof.html -- ./program              (for a browser)
  manycore profile --lock adaptive --sort hold -- ./program
  manycore profile --syscalls nic-llc -- ./server             (its system calls on other
                                                  CPUs, as `manycore run` has it)

Output:
  The program's own output stays as it is; the profile goes to stderr when the
  program has ended, in whatever way. Counts are exact and every wait is timed.
  Holds are sampled; the profile says at which rate.

  lock        the variable that it is; of a lock on the heap, 'in' and the function
              that waits for it longest; below, the function that waits for a variable
              ('waits in') or where a lock on the heap was initialised ('made in') or
              first used ('first in'); all locks of one such place are shown as one
  contended   share of the acquisitions that had to wait
  moved       share of the acquisitions on another CPU than the one before
  wait, hold  total, mean, 99th percentile (to about 20 %) and maximum; the total of
              holds, marked ~, is worked out from those that were timed

  With --syscalls: how many calls were moved and how many were not, by function and
  reason, and how long moved ones took.

  CPU time is sampled, too, where the kernel permits it: what of it is spinning for
  locks of the program's own or of the kernel is said below the tables.

  What would help stands below the tables, with the figures that say so.

  --json writes all of it to a file, and what the tables leave out: a timeline, what
  each thread waited for, who kept whom waiting, the order of locks, the longest
  queues; '-' is stdout, and leaves out the table.
  `manycore report` makes the table, and the other forms, of it later.

Processes:
  Children are profiled, too: each process has its table, after the sum of all. A
  process without the library (static, 32-bit, setuid) is named. When CMD has ended,
  what it has left running is left alone, and counts until then.

Exit status:
  The program's own: the command ends as the program did. Without CMD, 0.
  1 if writing the profile fails in the end, whatever the program's own was.
  2 if it cannot be profiled, or a file for the profile cannot be opened: the line on
  stderr says why and what to do.
";

/// Profile a program's locks: who waits for which lock, for how long, and who holds it
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Lock under the program; `futex` acts like glibc's mutex; rwlocks are adaptive-rw under any
    /// but `glibc`
    #[arg(long, value_name = "SPEC", default_value = "futex")]
    lock: Spec,
    /// Execute the program's calls on sockets on CPUs that this policy chooses;
    /// `manycore run --help` lists policies and keys
    #[arg(long, value_name = "POLICY", value_parser = calls::request)]
    syscalls: Option<Request>,
    /// Write the profile as JSON to a file, or to stdout for '-'
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
    /// Rows of the tables
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
    /// What comes first in the tables
    #[arg(long, value_parser = output::sort(), default_value = "wait")]
    sort: Sort,
    /// Sample the CPU time: this many times in a second of each thread's, or `no`
    #[arg(long, value_name = "RATE", default_value = "199")]
    samples: Rate,
    #[command(flatten)]
    forms: Forms,
    /// The kernel's side.
    #[command(flatten)]
    kernel: KernelOptions,
    /// Program and its arguments; with --kernel it may be left out
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Profiles a program; its exit status is ours.
pub fn run(options: &Options, terminal: &Terminal) -> Result<u8> {
    if !kernel::needs_command(&options.command, &options.kernel)? {
        if options.syscalls.is_some() {
            return Err(Failure::bad_input(
                "--syscalls moves the calls of a program that is started, and there is none",
                "add `-- CMD`, or leave it out",
            ));
        }
        let places = Places::open(options)?;
        let profile = options.kernel.alone(options.samples, terminal)?;
        show(options, places, &profile)?;
        return Ok(0);
    }
    let lock = lock_under(options, terminal)?;
    let places = Places::open(options)?;
    let mut interposition = Interposition::new(lock)?;
    if let Some(request) = &options.syscalls {
        interposition = Calls::choose(request)?.under(interposition)?;
    }
    let watch = options.kernel.start(terminal);
    let sampler = options.samples.start(Scope::Command);
    let misses = Some(CacheMissCounters::start());
    let mut inbox = Inbox::to_hand_on()?;
    let (profile, status) = observe(
        &options.command,
        &interposition,
        |_| {},
        (Beside { watch, sampler }, misses),
        &mut inbox,
        terminal,
    )?;
    show(options, places, &profile)?;
    Ok(end_like(status))
}

/// The lock for the program. A program that cannot load the library keeps its own lock, and still
/// has the kernel's side.
fn lock_under(options: &Options, terminal: &Terminal) -> Result<Spec> {
    if let Err(refusal) = target::can_be_preloaded(&options.command) {
        if !options.kernel.is_wanted() || options.syscalls.is_some() {
            return Err(refusal.into());
        }
        let why = refusal.without_the_library()?;
        terminal.note(format_args!("only the kernel's side is profiled: {why}"));
        return Ok(Spec::glibc());
    }
    if options.lock.is_glibc() && !options.kernel.is_wanted() {
        return Err(Failure::bad_input(
            "nothing is counted where glibc's own lock is left in place",
            "profile with `--lock futex`, which does what glibc's mutex does",
        ));
    }
    Ok(options.lock.clone())
}

/// Where the profile goes: opened before anything is run.
struct Places {
    json: Option<Output>,
    forms: OpenForms,
}

impl Places {
    fn open(options: &Options) -> Result<Self> {
        let forms = options.forms.open(options.json.as_ref())?;
        let json = options.json.as_ref().map(|json| json.open("--json")).transpose()?;
        Ok(Self { json, forms })
    }
}

fn show(options: &Options, places: Places, profile: &Profile) -> Result<()> {
    if options.json.as_ref().is_none_or(|json| !json.is_stdout()) {
        let view = View::for_stderr(options.top.into(), options.sort);
        let text = match profile.command.is_empty() {
            true => table::kernel_alone(profile, view),
            false => table::whole(profile, view),
        };
        eprint!("\n{text}");
    }
    if let Some(json) = places.json {
        json.write_json(profile)?;
    }
    places.forms.write(profile)
}
