//! The simulated program of threads that contend for locks.

use std::cell::Cell;

use manycore_sim::thread;

use super::stage::{self, AnyStage};
use crate::contender::{self, Contender, Visitor};
use crate::mix::{Latch, Mix};
use crate::simulated::{Count, Finding, Run, SimulatedProgram, Window, sight};
use crate::slice::{Outcome, Runner, Settings};
use crate::work::Pace;

/// Makes a stage of these locks, with the window of time that counts, the clock's rate, and the
/// counters.
type Staging = for<'a> fn(&[Latch], Window, f64, &'a [Count]) -> Box<dyn AnyStage + 'a>;

/// What sets a stage for a kind of lock.
struct Stager;

impl Visitor for Stager {
    type Output = Staging;

    fn visit<C: Contender>(self) -> Staging {
        stage::set::<C>
    }
}

impl SimulatedProgram for Mix {
    const NAME: &'static str = "Sections";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

fn simulate(run: &Run, mix: &Mix) -> Result<Finding, String> {
    let job = run.job;
    let stager = contender::simulated::with(&job.mechanism, Stager);
    let set = stager
        .ok_or_else(|| format!("there is no lock `{}` that can be simulated", job.mechanism))?;
    let (window, ghz) = (run.window(0), run.ghz());
    let settings = Settings {
        threads: job.threads,
        mix: mix.clone(),
        pinning: job.pinning,
        warm_up: job.measured / 5,
        measured: job.measured,
        drain: std::time::Duration::ZERO,
        sample: 1,
        // A turn of work is a cycle.
        pace: Pace::of(1.0 / ghz),
        seed: job.seed,
    };
    let counts: Vec<Count> = (0..job.threads).map(|_| Count::default()).collect();
    let runners: Vec<Cell<Option<Runner>>> = (0..job.threads as usize)
        .map(|index| Cell::new(Some(Runner::new(index, &settings))))
        .collect();
    let report = run.simulate(|| {
        let stage = set(&mix.locks, window, ghz, &counts);
        let outcomes = thread::parallel(job.threads, |index| {
            let runner = runners[index as usize].take().expect("each thread runs once");
            stage.run(runner)
        });
        (outcomes, stage.written())
    })?;
    let (outcomes, written) = &report.result;
    verify(outcomes, *written)?;
    let counted = counts.iter().map(Count::counted).collect();
    let slice = run.slice(window, counted, outcomes.iter().map(|outcome| &outcome.waits));
    let sections = outcomes.iter().map(|outcome| outcome.sections).sum::<u64>().max(1);
    Ok(Finding { slice, sight: sight(&report, sections) })
}

/// Whether the lock did what a lock is for.
fn verify(outcomes: &[Outcome], found: u64) -> Result<(), String> {
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    match (sum(|outcome| outcome.violations), sum(|outcome| outcome.written)) {
        (0, written) if written == found => Ok(()),
        (0, written) => Err(format!(
            "the lock lost updates: the threads made {written}, and the data shows {found}"
        )),
        (violations, _) => Err(format!("the lock let two threads in at once, {violations} times")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Point;
    use crate::lock::simulated::Options;
    use crate::simulated::{self, Job, SimulatorPool};
    use crate::work::Length;
    use crate::worker::Command;

    #[test]
    fn what_cannot_be_simulated_is_an_error() {
        let machine = manycore_sim::model::find("xeon-4x6").unwrap();
        let length = Length::fixed(100.0);
        let point =
            Point { threads: 2, locks: 1, section: length, outside: length, reads: 0.0, data: 1 };
        let nobody = Command { program: "true".into(), arguments: Vec::new() };
        let pool = SimulatorPool::new(nobody, None, None, false);
        let job = Options::new(machine.clone(), pool).job(&point, "futex", &machine.to_toml());
        let error = |job: Job| simulated::simulate::<Mix>(&job).unwrap_err();
        let unknown = error(Job { mechanism: "nosuch".into(), ..job.clone() });
        assert!(unknown.contains("nosuch"), "{unknown}");
        let unreadable = error(Job { machine: "schema = 7".into(), ..job });
        assert!(unreadable.contains("schema"), "{unreadable}");
    }
}
