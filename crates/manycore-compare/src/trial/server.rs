//! A run of a server: start it, wait until it is ready, apply the load, and stop it.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use humantime::format_duration;
use rustix::process::Signal;
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

use super::trial_dir::TrialDir;
use super::{Load, Outcome, Plan, Step, shell};
use manycore_launch::child::{Ended, Running, Wait, describe};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;

/// Between two probes.
const PROBE_PAUSE: Duration = Duration::from_millis(20);
/// How long it may take until a server is seen to be dead after its load has failed.
const DYING: Duration = Duration::from_secs(2);

/// Does one run.
pub fn run(
    plan: &Plan,
    load: &Load,
    dir: &TrialDir,
    interposition: &Interposition,
    inbox: &mut Inbox,
) -> Result<Outcome> {
    let mut serving = Serving::start(plan, load, dir, interposition, inbox)?;
    let measured = serving.put(&load.command, inbox)?;
    let (ended, stopped) = serving.stop()?;
    Ok(Outcome {
        cpu: ended.cpu(),
        kernel: ended.kernel,
        max_rss: ended.max_rss,
        max_rss_least: ended.max_rss_least,
        killed: measured.killed || !stopped,
        ..measured
    })
}

/// A server that is ready, for loads one after the other. It is stopped even after a failure:
/// `Running` does so when it is dropped.
#[derive(Debug)]
pub struct Serving<'a> {
    plan: &'a Plan,
    dir: &'a TrialDir,
    grace: Duration,
    step: Step,
    /// None once it has ended.
    server: Option<Running>,
}

impl<'a> Serving<'a> {
    /// Starts it, and waits until it is ready.
    pub fn start(
        plan: &'a Plan,
        load: &Load,
        dir: &'a TrialDir,
        interposition: &Interposition,
        inbox: &mut Inbox,
    ) -> Result<Self> {
        let step = Step { what: "the server", log: dir.log("server") };
        let mut server = step.start(plan.program(dir, interposition))?;
        await_ready(&mut server, &step, load, dir, inbox)?;
        Ok(Self { plan, dir, grace: load.grace, step, server: Some(server) })
    }

    /// Applies a load. CPU time and memory in the outcome are the load's.
    pub fn put(&mut self, command: &OsStr, inbox: &mut Inbox) -> Result<Outcome> {
        let loading = Step { what: "the load", log: self.dir.log("load") };
        let running = loading.start(shell(&self.dir.fill(command)))?;
        // A load generator prints its results when a user presses ^C.
        let server = self.server.as_mut();
        let measured = self.plan.measure(running, &loading, Signal::INT, server, inbox);
        // A load fails when its server dies, and may be faster about it.
        let patience = match measured {
            Err(Failure::Failed { .. }) => DYING,
            _ => Duration::ZERO,
        };
        if let Some(server) = &mut self.server
            && server.wait_until(Instant::now() + patience, inbox)? == Wait::Ended
        {
            let ended = self.reap()?;
            return Err(self.step.failed(format!("ended under load: {}", describe(ended.status))));
        }
        let (measured, killed) = measured?;
        Ok(Outcome {
            wall: measured.wall,
            cpu: measured.cpu(),
            kernel: measured.kernel,
            max_rss: measured.max_rss,
            max_rss_least: measured.max_rss_least,
            output: loading.log.read()?,
            killed,
        })
    }

    /// Asks it to end; returns its exit, and whether it ended without being killed.
    pub fn stop(mut self) -> Result<(Ended, bool)> {
        let stopped = self.server.as_mut().is_none_or(|server| server.stop(self.grace));
        let ended = self.reap()?;
        if let Some(SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV) = ended.status.signal() {
            let how = describe(ended.status);
            return Err(self.step.failed(format!("crashed when it was asked to end: {how}")));
        }
        Ok((ended, stopped))
    }

    fn reap(&mut self) -> Result<Ended> {
        match self.server.take() {
            Some(server) => self.step.reap(server),
            None => Err(self.step.failed("has ended before".to_owned())),
        }
    }
}

fn await_ready(
    server: &mut Running,
    step: &Step,
    load: &Load,
    dir: &TrialDir,
    inbox: &mut Inbox,
) -> Result<()> {
    let deadline = Instant::now() + load.ready_timeout;
    loop {
        if load.ready.probe(dir, &step.log, deadline, inbox)? {
            return Ok(());
        }
        if server.wait_until(deadline.min(Instant::now() + PROBE_PAUSE), inbox)? == Wait::Ended {
            return Err(step.failed(
                "ended before it was ready (it has to stay in the foreground)".to_owned(),
            ));
        }
        if Instant::now() >= deadline {
            return Err(step.failed(format!(
                "was not ready within {}: it hangs, --ready does not fit, or it needs a longer --ready-timeout",
                format_duration(load.ready_timeout)
            )));
        }
    }
}
