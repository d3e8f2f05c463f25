//! The kernel's side alone, of the system or of a process that runs already: nothing is started.

use std::os::fd::OwnedFd;
use std::time::Duration;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;
use manycore_measure::Host;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::kernel_side::Beside;
use super::process_tree::own_cpu_time;
use crate::analyze::assemble::{Run, Watched, assemble};
use crate::analyze::run_analysis::timeline::TimelineBuilder;
use crate::clock::{Clock, ticks};
use crate::profile::{Exit, Profile};

/// How often events are read.
const POLL: Duration = Duration::from_millis(100);

/// A process that runs already.
#[derive(Debug)]
pub struct Attached {
    pid: u32,
    fd: OwnedFd,
}

impl Attached {
    /// The process with this number.
    ///
    /// # Errors
    ///
    /// [`Failure`], if there is none.
    pub fn to(pid: u32) -> Result<Self> {
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        match process.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(fd)) => Ok(Self { pid, fd }),
            _ => Err(Failure::bad_input(
                format!("there is no process {pid}"),
                "let --pid name a process that runs; `pidof` and `pgrep` know their numbers",
            )),
        }
    }
}

/// Observes until the process ends, a signal arrives, or the time is over. Returns the profile.
///
/// # Panics
///
/// If there is no watch.
pub fn observe_kernel(
    process: Option<&Attached>,
    mut beside: Beside,
    duration: Option<Duration>,
    inbox: &mut Inbox,
    terminal: &Terminal,
) -> Profile {
    let clock = Clock::start();
    // For the whole system there is no total CPU time to relate a share to.
    let cpu_until_now = || own_cpu_time(process?.pid);
    let before = cpu_until_now().unwrap_or_default();
    let mut after = before;
    let until_now = |after: (f64, f64)| (after.0 - before.0, after.1 - before.1);
    let mut recorder = TimelineBuilder::new(POLL.as_secs_f64());
    terminal.say("watching the kernel");
    loop {
        let left = duration.map_or(POLL, |whole| whole.saturating_sub(clock.elapsed()));
        let mut fds = vec![PollFd::from_borrowed_fd(inbox.fd(), PollFlags::IN)];
        fds.extend(process.map(|process| PollFd::new(&process.fd, PollFlags::IN)));
        let timeout = POLL.min(left).try_into().expect("a tenth of a second fits");
        // The call is interrupted by a signal that the inbox has. It fails only for invalid
        // descriptors.
        let _ = poll(&mut fds, Some(&timeout));
        beside.sample();
        // For a process that its parent has reaped: until the last sample.
        after = cpu_until_now().unwrap_or(after);
        let at = clock.elapsed().as_secs_f64();
        recorder.sample(at, until_now(after), ticks(), []);
        if let Some(counts) = beside.count_futexes() {
            recorder.look_at_futexes(at, counts);
        }
        let process_ended = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        if inbox.take().is_some() || process_ended || left.is_zero() {
            break;
        }
    }
    let wall = clock.elapsed().as_secs_f64();
    let (user, kernel) = until_now(after);
    let seen = beside.finish(&clock, None);
    recorder.end(wall, (user, kernel), &[], &seen.futexes);
    let run = Run {
        command: Vec::new(),
        host: Host::describe(),
        exit: Exit::Status(0),
        lock: "glibc".to_owned(),
        is_interposed: false,
        wall,
        user,
        kernel,
        rate: clock.rate(),
        is_server: false,
        running: Vec::new(),
        not_interposed: Vec::new(),
        silent: 0,
        watched: Watched { timeline: process.map(|_| recorder), ..seen },
    };
    assemble(run, &[])
}
