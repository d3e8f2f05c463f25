//! The kernel's side of a profile.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use clap::Args;
use humantime::parse_duration;
use manycore_kernel_trace::{Means, Refusal, Request, Sampler, Scope, Seen, Watch};
use manycore_measure::Host;
use manycore_profile::analyze::assemble::{Run, Watched, assemble};
use manycore_profile::analyze::run_analysis::timeline::Recorder;
use manycore_profile::clock::{Clock, ticks};
use manycore_profile::profile::{Exit, Profile};
use manycore_profile::render::kernel_table::sentence;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::profile::samples::{self, Rate};
use crate::profile::tree::own_cpu_time;
use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

/// How often events are read.
const LOOK: Duration = Duration::from_millis(100);

/// What of the kernel is wanted.
#[derive(Args, Debug)]
pub struct KernelOptions {
    /// Watch the kernel's locks, too: by the first means that works, or by this one
    #[arg(
        long,
        value_enum,
        value_name = "MEANS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    kernel: Option<Means>,
    /// With --kernel: the waits of all processes, not those of CMD and its children alone
    #[arg(long, requires = "kernel", conflicts_with = "pid")]
    system: bool,
    /// With --kernel: the waits of this process, until it ends or ^C; there is no CMD then
    #[arg(long, requires = "kernel", conflicts_with = "command")]
    pid: Option<u32>,
    /// With --kernel and without CMD: for so long, and not until ^C
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "kernel", conflicts_with = "command")]
    duration: Option<Duration>,
}

impl KernelOptions {
    /// Whether the kernel is to be watched.
    pub fn is_wanted(&self) -> bool {
        self.kernel.is_some()
    }

    /// Begins to watch a command that is about to be started. What the kernel refuses is said, and is no failure: the
    /// program's side is there all the same.
    pub fn start(&self, terminal: &Terminal) -> Option<Watch> {
        let scope = if self.system { Scope::System } else { Scope::Command };
        match self.watch(scope)? {
            Ok(watch) => Some(watch),
            Err(why) => {
                terminal.note(format_args!("the kernel is not watched: {why}"));
                None
            }
        }
    }

    fn watch(&self, scope: Scope) -> Option<std::result::Result<Watch, Refusal>> {
        Some(Watch::start_with_futexes(self.kernel?, &Request { scope }))
    }

    /// Watches the system or a process, without starting anything, and samples the process.
    pub fn alone(&self, rate: Rate, terminal: &Terminal) -> Result<Profile> {
        let scope = self.pid.map_or(Scope::System, Scope::Process);
        let process = self.pid.map(opened).transpose()?;
        let mut inbox = Inbox::open()?;
        let clock = Clock::start();
        // First, because the watch counts from its start on, and this takes a while.
        let mut sampler = self.pid.and_then(|pid| rate.start(Scope::Process(pid)));
        let mut watch = self.watch(scope).expect("it is wanted").map_err(|why| {
            Failure::bad_input(
                format!("the kernel cannot be watched: {why}"),
                "profile a command to see its own side: manycore profile -- CMD",
            )
        })?;
        // Only now: to load BPF programs may take longer than what was asked for.
        let started = Instant::now();
        let before = self.cpu_until_now().unwrap_or_default();
        let mut after = before;
        let until_now = |after: (f64, f64)| (after.0 - before.0, after.1 - before.1);
        let mut recorder = Recorder::new(LOOK.as_secs_f64());
        terminal.say("watching the kernel");
        loop {
            let left = self.duration.map_or(LOOK, |whole| whole.saturating_sub(started.elapsed()));
            let mut fds = vec![PollFd::from_borrowed_fd(inbox.fd(), PollFlags::IN)];
            fds.extend(process.as_ref().map(|process| PollFd::new(process, PollFlags::IN)));
            let timeout = LOOK.min(left).try_into().expect("a tenth of a second fits");
            // Interrupted by a signal that the inbox has, or fails for bad descriptors only.
            let _ = poll(&mut fds, Some(&timeout));
            watch.look();
            sampler.iter_mut().flatten().for_each(Sampler::look);
            // Of a process that its parent has reaped, until the last look.
            after = self.cpu_until_now().unwrap_or(after);
            let at = started.elapsed().as_secs_f64();
            recorder.look(at, until_now(after), ticks(), []);
            watch
                .count_futexes()
                .into_iter()
                .for_each(|counts| recorder.look_at_futexes(at, counts));
            let process_ended = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            drop(fds);
            if inbox.take().is_some() || process_ended || left.is_zero() {
                break;
            }
        }
        let wall = started.elapsed().as_secs_f64();
        // Before the samples, which take a while: what is under way counts until now.
        let futexes = watch.futexes();
        let seen = watch.finish();
        let samples = samples::finish(sampler, started.elapsed(), None);
        recorder.end(wall, until_now(after), &[], &futexes);
        let timeline = self.pid.map(|_| recorder);
        let run = Run {
            command: Vec::new(),
            exit: Exit::Status(0),
            lock: "glibc".to_owned(),
            wall,
            user: until_now(after).0,
            kernel: until_now(after).1,
            rate: clock.rate(),
            is_server: false,
            running: Vec::new(),
            not_interposed: Vec::new(),
            silent: 0,
            host: Host::describe(),
            watched: Watched { timeline, futexes, samples, ..Watched::default() },
        };
        let mut profile = assemble(run, &[]);
        forget_the_library(&mut profile);
        add(&mut profile, seen);
        Ok(profile)
    }

    /// CPU time of the process that is watched, in seconds: in user space and in the kernel. The whole system has no threads of
    /// which it would be a share.
    fn cpu_until_now(&self) -> Option<(f64, f64)> {
        own_cpu_time(self.pid?)
    }
}

/// The library was not put under the program: only what the kernel saw of its locks is to be said, and that nobody looked
/// into its processes is no news.
pub fn forget_the_library(profile: &mut Profile) {
    if profile.system_calls.is_none() {
        profile.not_interposed.clear();
    }
    if profile.locks.is_empty() {
        profile.finding.clear();
    }
}

/// Adds to a profile what a watch saw.
pub fn add(profile: &mut Profile, seen: Seen) {
    profile.kernel = Some(seen.run);
    profile.kernel_locks = seen.locks;
    let said = sentence(profile);
    if !profile.finding.is_empty() && !said.is_empty() {
        profile.finding.push(' ');
    }
    profile.finding += &said;
}

/// What is said when there is nothing to be done.
pub fn needs_command(command: &[OsString], options: &KernelOptions) -> Result<bool> {
    match (command.is_empty(), options.is_wanted()) {
        (true, false) => {
            Err(Failure::bad_input("there is no CMD", "name a program, or use --kernel"))
        }
        (is_empty, _) => Ok(!is_empty),
    }
}

fn opened(pid: u32) -> Result<rustix::fd::OwnedFd> {
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let found = process.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    match found {
        Some(Ok(fd)) => Ok(fd),
        _ => Err(Failure::bad_input(
            format!("there is no process {pid}"),
            "let --pid name a process that runs; `pidof` and `pgrep` know their numbers",
        )),
    }
}
