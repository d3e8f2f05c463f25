//! One run of a program under one lock: alone, or as a server with a load.

mod ready;
mod server;
mod trial_dir;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use humantime::format_duration;
use manycore_profile::analyze::process::ProcessStats;
use manycore_profile::record::directory;
pub use ready::Ready;
use rustix::process::Signal;

use manycore_launch::child::{Ended, Running, Wait, describe};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
pub use server::Serving;
use trial_dir::Log;
pub use trial_dir::TrialDir;

/// How often a server is polled while its load runs.
const LOOK: Duration = Duration::from_millis(200);

/// The parts of a run. `{dir}` and `{port}` in its commands stand for a fresh directory and a free
/// port.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The program under test and its arguments.
    pub command: Vec<OsString>,
    /// A shell command before each run, which is not measured.
    pub prepare: Option<OsString>,
    /// What is put on the program if it is a server.
    pub load: Option<Load>,
    /// How long a program may run.
    pub timeout: Duration,
    /// Exit statuses besides 0 with which the measured program has succeeded.
    pub ok_status: Vec<u8>,
    /// When the measured program is ended, if it does not end by itself.
    pub duration: Option<Duration>,
    /// How long it may take to end then.
    pub grace: Duration,
}

/// The load on a server.
#[derive(Clone, Debug)]
pub struct Load {
    /// A shell command, which runs without the lock under test.
    pub command: OsString,
    /// When it may begin.
    pub ready: Ready,
    /// How long the server may take to be ready.
    pub ready_timeout: Duration,
    /// How long the server may take to end.
    pub grace: Duration,
}

/// What one run gave.
#[derive(Debug)]
pub struct Outcome {
    /// How long the program took; of a server, how long the load took.
    pub wall: Duration,
    /// CPU time that the program used; of a server, from its start to its end.
    pub cpu: Duration,
    /// The part of it in the kernel.
    pub kernel: Duration,
    /// The largest resident set of the program, in bytes.
    pub max_rss: u64,
    /// The least that can be told.
    pub max_rss_least: u64,
    /// What the program said; of a server, what the load said.
    pub output: String,
    /// Whether a server had to be killed because it did not end when asked to.
    pub killed: bool,
}

impl Outcome {
    /// A run that took no time and has only an output: for tests of code that reads the output.
    pub fn said(output: &str) -> Self {
        Self {
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
            kernel: Duration::ZERO,
            max_rss: 0,
            max_rss_least: 0,
            output: output.to_owned(),
            killed: false,
        }
    }
}

/// What the preload library saw of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The number of processes that it was loaded into.
    pub processes: usize,
    /// The number of acquisitions of locks in them.
    pub acquired: u64,
    /// CPU time in waits for locks, estimated from samples.
    pub lock_spin: Duration,
}

impl Plan {
    /// Does one run under a lock.
    pub fn run(&self, interposition: &Interposition, inbox: &mut Inbox) -> Result<Outcome> {
        self.run_in(&TrialDir::new()?, interposition, inbox)
    }

    /// Makes one run with statistics, to see how the program uses the lock.
    pub fn rehearse(
        &self,
        interposition: &Interposition,
        inbox: &mut Inbox,
    ) -> Result<(Outcome, Seen)> {
        let dir = TrialDir::new()?;
        let watched = interposition.with_statistics(dir.statistics());
        let outcome = self.run_in(&dir, &watched, inbox)?;
        let processes = directory::read(dir.statistics())?;
        let acquired = processes.iter().map(ProcessStats::acquired).sum();
        let lock_spin = processes.iter().map(ProcessStats::lock_spin).sum();
        Ok((outcome, Seen { processes: processes.len(), acquired, lock_spin }))
    }

    fn run_in(
        &self,
        dir: &TrialDir,
        interposition: &Interposition,
        inbox: &mut Inbox,
    ) -> Result<Outcome> {
        if let Some(prepare) = &self.prepare {
            let step = Step { what: "the command of --prepare", log: dir.log("prepare") };
            let running = step.start(shell(&dir.fill(prepare)))?;
            let (ended, _) = self.wait(running, &step, None, None, inbox)?;
            step.succeeded(ended.status.success(), &ended)?;
        }
        match &self.load {
            Some(load) => server::run(self, load, dir, interposition, inbox),
            None => self.alone(dir, interposition, inbox),
        }
    }

    /// Starts a server in a directory of its own, for loads one after the other.
    pub fn serve<'a>(
        &'a self,
        load: &Load,
        dir: &'a TrialDir,
        interposition: &Interposition,
        inbox: &mut Inbox,
    ) -> Result<Serving<'a>> {
        Serving::start(self, load, dir, interposition, inbox)
    }

    fn alone(
        &self,
        dir: &TrialDir,
        interposition: &Interposition,
        inbox: &mut Inbox,
    ) -> Result<Outcome> {
        let step = Step { what: "the program", log: dir.log("program") };
        let running = step.start(self.program(dir, interposition))?;
        let (ended, killed) = self.measure(running, &step, Signal::TERM, None, inbox)?;
        Ok(Outcome {
            wall: ended.wall,
            cpu: ended.cpu(),
            kernel: ended.kernel,
            max_rss: ended.max_rss,
            max_rss_least: ended.max_rss_least,
            output: step.log.read()?,
            killed,
        })
    }

    /// The program under test, ready to be started.
    fn program(&self, dir: &TrialDir, interposition: &Interposition) -> Command {
        let mut words = self.command.iter().map(|word| dir.fill(word));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        interposition.apply(&mut command);
        command
    }

    /// Waits for the measured program, and ends it by `signal` after [`Plan::duration`]. Returns
    /// whether it had to be killed then.
    fn measure(
        &self,
        running: Running,
        step: &Step,
        signal: Signal,
        server: Option<&mut Running>,
        inbox: &mut Inbox,
    ) -> Result<(Ended, bool)> {
        let stop = self.duration.map(|after| Stop { after, signal, grace: self.grace });
        let (ended, stopped) = self.wait(running, step, stop, server, inbox)?;
        let status = ended.status.code().and_then(|code| u8::try_from(code).ok());
        let is_ok =
            ended.status.success() || status.is_some_and(|one| self.ok_status.contains(&one));
        let by_us = |stopped: Stopped| {
            stopped == Stopped::Killed
                || ended.status.signal() == Some(signal.as_raw())
                || ended.status.code() == Some(128 + signal.as_raw())
        };
        step.succeeded(is_ok || stopped.is_some_and(by_us), &ended)?;
        Ok((ended, stopped == Some(Stopped::Killed)))
    }

    /// Waits for a program that has to end within the time limit. It is given up early if `server`,
    /// which it uses, has ended.
    fn wait(
        &self,
        mut running: Running,
        step: &Step,
        stop: Option<Stop>,
        mut server: Option<&mut Running>,
        inbox: &mut Inbox,
    ) -> Result<(Ended, Option<Stopped>)> {
        let started = Instant::now();
        let deadline = started + self.timeout;
        let stop_at = stop.map(|stop| started + stop.after);
        let until = stop_at.map_or(deadline, |at| at.min(deadline));
        while running.wait_until(until.min(Instant::now() + LOOK), inbox)? == Wait::TimedOut {
            if let Some(server) = &mut server
                && server.has_ended(inbox)?
            {
                return Err(step.failed("was given up because the server has ended".to_owned()));
            }
            if let (Some(stop), Some(at)) = (stop, stop_at)
                && Instant::now() >= at
            {
                let stopped = stop.end(&mut running);
                return Ok((step.reap(running)?, Some(stopped)));
            }
            if Instant::now() >= deadline {
                running.kill();
                return Err(step.failed(format!(
                    "did not end within {} and was killed: it hangs, or needs a longer --timeout",
                    format_duration(self.timeout)
                )));
            }
        }
        Ok((step.reap(running)?, None))
    }
}

/// When a program is ended that does not end by itself, and how.
#[derive(Clone, Copy, Debug)]
struct Stop {
    after: Duration,
    signal: Signal,
    grace: Duration,
}

/// How a program ended that was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    /// Within its time.
    Ended,
    Killed,
}

impl Stop {
    fn end(self, running: &mut Running) -> Stopped {
        let ended = match self.signal {
            Signal::INT => running.interrupt(self.grace),
            _ => running.stop(self.grace),
        };
        if ended { Stopped::Ended } else { Stopped::Killed }
    }
}

/// A program of a run: its name in messages, and the files for its output.
#[derive(Debug)]
struct Step {
    what: &'static str,
    log: Log,
}

impl Step {
    fn start(&self, command: Command) -> Result<Running> {
        let (stdout, stderr) = self.log.open()?;
        Running::spawn(command, stdout, stderr)
            .map_err(|error| self.failed(format!("cannot be started: {error}")))
    }

    fn reap(&self, running: Running) -> Result<Ended> {
        running.reap().map_err(|error| self.failed(format!("cannot be waited for: {error}")))
    }

    /// Fails with the program's exit status, unless it has ended as expected.
    fn succeeded(&self, is_ok: bool, ended: &Ended) -> Result<()> {
        if is_ok {
            return Ok(());
        }
        Err(self.failed(format!("failed: {}", describe(ended.status))))
    }

    /// A failure of this program, with what it said last.
    fn failed(&self, how: String) -> Failure {
        Failure::failed(format!("{} {how}", self.what)).with_output(&self.log.tail())
    }
}

/// A command for the shell.
fn shell(text: &OsStr) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text);
    command
}
