//! Programs that the command starts, waits for and stops: with a time limit, an account of their
//! use of resources, and nothing left behind.
//!
//! A program under test is the leader of a process group of its own. After the leader has ended, or
//! was ended by us, the rest of the group is killed before the leader is reaped, while its number
//! cannot belong to another process. A program in the foreground stays in the command's group, so
//! that it has the terminal.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
    pidfd_open, set_parent_process_death_signal, waitid,
};

use crate::failure::{Failure, Result, die_of};
use crate::signals::Inbox;

/// How long a program may take to stop after a request.
const TO_STOP: Duration = Duration::from_secs(1);
/// How long a program that is no longer wanted may take to end after SIGTERM when the command
/// itself is to end.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    leads_group: bool,
    pidfd: OwnedFd,
    /// Our resident set when it was made, in bytes.
    made_from: u64,
    started: Instant,
    ended: Option<Instant>,
    reaped: bool,
}

/// How a wait came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The program has ended.
    Ended,
    /// It runs on; the time is over.
    TimedOut,
}

/// A program that has ended, and what it used.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How it ended.
    pub status: ExitStatus,
    /// From its start to its end.
    pub wall: Duration,
    /// CPU time of it and of the children that it has waited for, outside of the kernel.
    pub user: Duration,
    /// CPU time of it and of the children that it has waited for, in the kernel.
    pub kernel: Duration,
    /// The largest resident set of it or one of those children, in bytes.
    pub max_rss: u64,
    /// The smallest possible `max_rss`: a new process counts the memory of the process that made
    /// it, ours.
    pub max_rss_least: u64,
}

impl Ended {
    /// All its CPU time.
    pub fn cpu(&self) -> Duration {
        self.user + self.kernel
    }
}

impl Running {
    /// Starts a program in a process group of its own, with nothing to read and its output in two
    /// files.
    pub fn spawn(mut command: Command, stdout: File, stderr: File) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        // Should this command be killed outright, the program goes with it.
        Self::start(command, true, Signal::KILL)
    }

    /// Starts a program in this command's place: with its terminal, its streams and its process
    /// group.
    pub fn foreground(command: Command) -> io::Result<Self> {
        Self::start(command, false, Signal::TERM)
    }

    fn start(mut command: Command, leads_group: bool, at_our_death: Signal) -> io::Result<Self> {
        // SAFETY: the closure makes one system call and touches no memory of the parent.
        unsafe {
            command.pre_exec(move || Ok(set_parent_process_death_signal(Some(at_our_death))?));
        }
        let made_from = own_rss();
        let started = Instant::now();
        let mut child = command.spawn()?;
        // The number is the child's until we reap it, which `Child` does not do when it is dropped.
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            // Without the descriptor no code can wait for the child in time, so the child must not
            // run on. The kill fails only if the child has ended already.
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        Ok(Self { pid, leads_group, pidfd, made_from, started, ended: None, reaped: false })
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the program ends or the time is over; a signal to the command is an error.
    pub fn wait_until(&mut self, deadline: Instant, inbox: &mut Inbox) -> Result<Wait> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (ended, signalled) = self.poll(left, Some(inbox)).map_err(cannot_wait)?;
            if ended {
                return Ok(Wait::Ended);
            }
            if signalled && let Some(arrived) = inbox.take() {
                return Err(Failure::Interrupted(arrived.signal()));
            }
            if left.is_zero() {
                return Ok(Wait::TimedOut);
            }
        }
    }

    /// Waits until the program ends, and passes on the signals that come meanwhile; returns whether
    /// any of them asked it to end. Calls the function each time that `every` has passed.
    pub fn wait_handing_on(
        &mut self,
        inbox: &mut Inbox,
        every: Duration,
        mut look: impl FnMut(),
    ) -> Result<bool> {
        let mut asked_to_end = false;
        let mut asked_to_stop: Option<Instant> = None;
        loop {
            let (ended, _) = self.poll(every, Some(inbox)).map_err(cannot_wait)?;
            while let Some(arrived) = inbox.take() {
                asked_to_end |= arrived.asks_to_end();
                if arrived.asks_to_stop() {
                    asked_to_stop = Some(Instant::now());
                }
                if !ended && !arrived.is_from_terminal() {
                    arrived.hand_on(self.pidfd.as_fd());
                }
            }
            if ended {
                return Ok(asked_to_end);
            }
            // A shell takes its terminal back when the command stops together with the program. If
            // the program goes on, or is stopped later by another process, the command waits for
            // it.
            if asked_to_stop.is_some_and(|at| at.elapsed() < TO_STOP) && self.has_stopped() {
                asked_to_stop = None;
                // Fails for no process.
                let _ = kill_process(getpid(), Signal::STOP);
            }
            look();
        }
    }

    /// Whether the program is stopped until it is continued.
    fn has_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::PidFd(self.pidfd.as_fd()), options)
            .is_ok_and(|status| status.is_some_and(|status| status.stopped()))
    }

    /// Whether the program has ended.
    pub fn has_ended(&mut self, inbox: &mut Inbox) -> Result<bool> {
        Ok(self.wait_until(Instant::now(), inbox)? == Wait::Ended)
    }

    /// Asks the program to end by SIGTERM, and kills its group when it has not within `grace`.
    /// Returns whether it did.
    pub fn stop(&mut self, grace: Duration) -> bool {
        // Fails only when the program has ended already.
        let _ = kill_process(self.pid, Signal::TERM);
        self.ends_within(grace)
    }

    /// As [`stop`](Self::stop), but by SIGINT and for the whole group, as if a user had pressed ^C
    /// on its terminal.
    pub fn interrupt(&mut self, grace: Duration) -> bool {
        // Fails only when the program has ended already.
        let _ = match self.leads_group {
            true => kill_process_group(self.pid, Signal::INT),
            false => kill_process(self.pid, Signal::INT),
        };
        self.ends_within(grace)
    }

    fn ends_within(&mut self, grace: Duration) -> bool {
        let deadline = Instant::now() + grace;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.poll(left, None) {
                Ok((true, _)) => return true,
                Ok(_) if left.is_zero() => break,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        self.kill();
        false
    }

    /// Kills the program and, if it has a group of its own, the processes that it has started.
    pub fn kill(&mut self) {
        // Fails only when nothing of it is left.
        let _ = match self.leads_group {
            true => kill_process_group(self.pid, Signal::KILL),
            false => kill_process(self.pid, Signal::KILL),
        };
    }

    /// Reaps a program that has ended or was killed: kills the rest of its group, and returns the
    /// account.
    pub fn reap(mut self) -> io::Result<Ended> {
        self.kill();
        self.reap_leader()
    }

    fn reap_leader(&mut self) -> io::Result<Ended> {
        let mut status = 0;
        // SAFETY: all zero is a valid value of the structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let pid = self.pid.as_raw_nonzero().get();
        loop {
            // SAFETY: both results are written to variables of ours.
            let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
            if waited == pid {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.reaped = true;
        let ended = self.ended.unwrap_or_else(Instant::now);
        Ok(Ended {
            status: ExitStatus::from_raw(status),
            wall: ended.duration_since(self.started),
            user: duration(usage.ru_utime),
            kernel: duration(usage.ru_stime),
            max_rss: usage.ru_maxrss as u64 * 1024,
            max_rss_least: self.made_from,
        })
    }

    /// Whether the program has ended and whether a signal has come, after at most `timeout`.
    fn poll(&mut self, timeout: Duration, inbox: Option<&Inbox>) -> io::Result<(bool, bool)> {
        let mut fds = vec![PollFd::new(&self.pidfd, PollFlags::IN)];
        if let Some(inbox) = inbox {
            fds.push(PollFd::from_borrowed_fd(inbox.fd(), PollFlags::IN));
        }
        let timeout = timeout.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut fds, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) | Ok(0) => return Ok((false, false)),
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let ended = !fds[0].revents().is_empty();
        let signalled = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if ended {
            self.ended.get_or_insert_with(Instant::now);
        }
        Ok((ended, signalled))
    }
}

impl Drop for Running {
    /// Kills the program, on the way out after an error or a signal.
    fn drop(&mut self) {
        if !self.reaped {
            self.stop(LAST_GRACE);
            self.kill();
            // The process is dead or dying, and there is no one left to report to.
            let _ = self.reap_leader();
        }
    }
}

/// The resident set of this process now, in bytes.
fn own_rss() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

/// Ends in the way a program did: dies of the signal that killed it, or returns its exit status.
pub fn end_like(status: ExitStatus) -> u8 {
    status.signal().map_or_else(|| status.code().unwrap_or_default() as u8, die_of)
}

/// How a program ended, in words.
pub fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

fn cannot_wait(error: io::Error) -> Failure {
    Failure::failed(format!("cannot wait for a program: {error}"))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}
