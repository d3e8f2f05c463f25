//! Locks at points, in rounds of slices.

use std::time::Duration;

use manycore_measure::paired::Rounds;

use super::point::Point;
use crate::campaign::{self, Campaign, Contest};
use crate::contender::{self, Contender, Visitor};
use crate::cpus;
use crate::failure::Failure;
use crate::slice::{self, Pinning, Settings, Slice};
use crate::work::Pace;
use crate::worker::{Command, Executor, Order, Subject, Worker};

/// All that a campaign needs to know.
#[derive(Debug)]
pub(crate) struct LockCampaign<'a> {
    pub points: Vec<Point>,
    /// The first one is the base line.
    pub subjects: Vec<Subject>,
    /// The length of a slice with few threads per CPU.
    pub slice: Duration,
    pub rounds: Rounds,
    pub pinning: Pinning,
    pub seed: u64,
    pub worker: &'a Command,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

/// What a campaign measured.
pub(crate) type Samples = campaign::Samples<Point, Subject, Slice>;

impl LockCampaign<'_> {
    /// Runs it all.
    pub fn run(self) -> Result<Samples, Failure> {
        let Self { slice, rounds, pinning, seed, worker, progress, .. } = self;
        let contest = Locks { slice, pinning, pace: Pace::measure(), seed, worker };
        Campaign { rounds, seed, progress }.run(&contest, self.points, self.subjects)
    }
}

struct Locks<'a> {
    slice: Duration,
    pinning: Pinning,
    pace: Pace,
    seed: u64,
    worker: &'a Command,
}

impl Contest for Locks<'_> {
    type Point = Point;
    type Candidate = Subject;
    type Slice = Settings;

    fn start(&self, subject: &Subject) -> Result<Worker, Failure> {
        Worker::start(self.worker, &[], subject)
    }

    fn slice(&self, point: &Point, _: &Subject, round: u32) -> Settings {
        let cpus = cpus::allowed().len() as u32;
        // Every thread should run on a CPU a few times, for some milliseconds each.
        let measured = self.slice * point.threads.div_ceil(3 * cpus);
        Settings {
            threads: point.threads,
            mix: point.mix(),
            pinning: self.pinning,
            warm_up: measured / 5,
            measured,
            drain: measured.max(Duration::from_millis(100)),
            sample: sample(point),
            pace: self.pace,
            seed: self.seed.wrapping_add(u64::from(round)),
        }
    }

    fn in_words(&self, point: &Point, subject: &Subject) -> String {
        format!("{subject}, {} threads", point.threads)
    }

    fn ends_worker(&self, slice: &Slice) -> bool {
        slice.stuck > 0
    }
}

/// How often a wait is timed. Timing one takes some 20 ns, so it is done so rarely that it costs a
/// percent, and at an odd interval.
fn sample(point: &Point) -> u32 {
    let cycle_ns = (point.section.mean_ns + point.outside.mean_ns).max(1.0);
    (2_000.0 / cycle_ns).ceil() as u32 | 1
}

impl Order for Settings {
    const NAME: &'static str = "lock";
    type Answer = Slice;

    fn time_max(&self) -> Duration {
        self.warm_up + self.measured + self.drain
    }
}

/// Runs slices with this lock, in a worker.
pub(crate) fn executor(lock: &str) -> Executor {
    let lock = lock.to_owned();
    Executor::new(move |settings| {
        let slice = contender::with(&lock, RunSlice(settings));
        slice.ok_or_else(|| format!("there is no lock `{lock}`"))?
    })
}

struct RunSlice(Settings);

impl Visitor for RunSlice {
    type Output = Result<Slice, String>;

    fn visit<C: Contender>(self) -> Self::Output {
        slice::run::<C>(&self.0)
    }
}
