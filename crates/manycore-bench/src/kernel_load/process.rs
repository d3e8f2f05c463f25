//! The process that is the load: it is started for each run, supervised, and asked for its results.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{Answer, Order};

use manycore_compare::trial::TrialDir;
use manycore_launch::child::{Running, Wait, describe};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::signals::Inbox;

/// How often a watch looks at it.
const LOOK: Duration = Duration::from_millis(50);
/// How much longer than ordered a run may take: of very many processes, each has to complete its
/// last job.
const GRACE: Duration = Duration::from_secs(120);

/// Runs an order in a process. The process and its children are gone afterwards, whatever happens.
pub fn run(
    order: &Order,
    room: &TrialDir,
    inbox: &mut Inbox,
    mut look: impl FnMut(),
) -> Result<Answer> {
    let failed = |what: String| Failure::failed(format!("{} at a time: {what}", order.parallel));
    let text = serde_json::to_string(order).map_err(|error| failed(error.to_string()))?;
    let program = std::env::current_exe()
        .map_err(|error| failed(format!("this command does not find itself: {error}")))?;
    let mut command = Command::new(program);
    command.args(["bench", "load", &text]).env_remove("LD_PRELOAD");
    let log = room.log("load");
    let (stdout, stderr) = log.open()?;
    let mut running = Running::spawn(command, stdout, stderr)
        .map_err(|error| failed(format!("the load cannot be started: {error}")))?;
    let deadline = Instant::now() + order.warm_up + order.measured + GRACE;
    while running.wait_until(deadline.min(Instant::now() + LOOK), inbox)? == Wait::TimedOut {
        if Instant::now() >= deadline {
            running.kill();
            return Err(
                failed("the load did not end, and was killed".to_owned()).with_output(&log.tail())
            );
        }
        look();
    }
    let ended = running
        .reap()
        .map_err(|error| failed(format!("the load cannot be waited for: {error}")))?;
    if !ended.status.success() {
        let how = format!("the load failed: {}", describe(ended.status));
        return Err(failed(how).with_output(&log.tail()));
    }
    let said = log.read()?;
    serde_json::from_str(said.lines().next().unwrap_or_default()).map_err(|error| {
        failed(format!("the load's answer is none: {error}")).with_output(&log.tail())
    })
}
