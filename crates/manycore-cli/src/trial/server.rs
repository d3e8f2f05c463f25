//! A run of a server: start it, wait until it is ready, put the load on it, stop it.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use humantime::format_duration;
use signal_hook::consts::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};

use super::room::Room;
use super::{Load, Outcome, Plan, Step, shell};
use crate::child::{Running, Wait, describe};
use crate::failure::{Failure, Result};
use crate::preload::Interposition;
use crate::signals::Inbox;

/// Between two probes.
const PROBE_PAUSE: Duration = Duration::from_millis(20);
/// How long a server on which the load has failed may take to turn out dead.
const DYING: Duration = Duration::from_secs(2);

/// Does one run. Whatever fails, the server is stopped: by `Running` when it is dropped.
pub fn run(
    plan: &Plan,
    load: &Load,
    room: &Room,
    interposition: &Interposition,
    inbox: &mut Inbox,
) -> Result<Outcome> {
    let step = Step { what: "the server", log: room.log("server") };
    let mut server = step.start(plan.program(room, interposition))?;
    await_ready(&mut server, &step, load, room, inbox)?;

    let loading = Step { what: "the load", log: room.log("load") };
    let running = loading.start(shell(&room.fill(&load.command)))?;
    let measured = plan.finish(running, &loading, Some(&mut server), inbox);
    // A load fails when its server dies, and may be faster about it.
    let patience = match measured {
        Err(Failure::Failed { .. }) => DYING,
        _ => Duration::ZERO,
    };
    if server.wait_until(Instant::now() + patience, inbox)? == Wait::Ended {
        let ended = step.reap(server)?;
        return Err(step.failed(format!("ended under load: {}", describe(ended.status))));
    }
    let measured = measured?;

    let stopped = server.stop(load.grace);
    let ended = step.reap(server)?;
    if let Some(SIGABRT | SIGBUS | SIGFPE | SIGILL | SIGSEGV) = ended.status.signal() {
        return Err(
            step.failed(format!("crashed when it was asked to end: {}", describe(ended.status)))
        );
    }
    Ok(Outcome {
        wall: measured.wall,
        cpu: ended.cpu(),
        kernel: ended.kernel,
        max_rss: ended.max_rss,
        max_rss_least: ended.max_rss_least,
        output: loading.log.read()?,
        killed: !stopped,
    })
}

fn await_ready(
    server: &mut Running,
    step: &Step,
    load: &Load,
    room: &Room,
    inbox: &mut Inbox,
) -> Result<()> {
    let deadline = Instant::now() + load.ready_timeout;
    loop {
        if load.ready.probe(room, &step.log, deadline, inbox)? {
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
