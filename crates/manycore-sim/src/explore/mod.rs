//! Exploring what else could happen: the same program under many schedules.
//!
//! In a simulation, time decides which thread goes on. Here a scheduler decides before each access,
//! from a seed. Accesses cost nothing, a sleep may end at any time, and a spinning thread is not
//! chosen until another changes something that it has read. A schedule that makes the program fail
//! is repeated exactly from its seed.
//!
//! ```
//! use manycore_sim::explore::{self, Exploration};
//! use manycore_sim::{backend, thread};
//! use std::cell::Cell;
//!
//! /// Adds one, not as one step.
//! fn increment(count: &Cell<u32>) {
//!     backend::load(count.as_ptr().addr());
//!     let before = count.get();
//!     backend::store(count.as_ptr().addr());
//!     count.set(before + 1);
//! }
//!
//! // One thread: fine under every schedule.
//! explore::check(|| {
//!     let count = Cell::new(0);
//!     (0..2).for_each(|_| increment(&count));
//!     assert_eq!(count.get(), 2);
//! });
//!
//! // Two threads: an update is lost if one is interrupted between its load and its store.
//! let found = Exploration::default().run(|| {
//!     let count = Cell::new(0);
//!     thread::parallel(2, |_| increment(&count));
//!     assert_eq!(count.get(), 2);
//! });
//! assert!(found.unwrap_err().failure.to_string().contains("panicked"));
//! ```
//!
//! # What it does not find
//!
//! Failures that need a memory order weaker than sequential consistency are not found; a model
//! checker such as loom finds those. Not all schedules are tried: those with few preemptions at
//! random places are likely to be among the tried ones.

mod pct;
mod random;

use std::cell::Cell;
use std::fmt;
use std::process::Command;
use std::time::Duration;

use self::pct::Pct;
use self::random::Random;
use crate::arena;
use crate::engine::{self, Engine, Policy, Scheduler};
use crate::machine::{Capacity, Machine, Topology};
use crate::{Cause, Failure};

/// How schedules are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// At each step, any thread.
    Random,
    /// Threads have priorities, which change at `changes` points: finds mistakes that need
    /// `changes` preemptions and one more with a probability that can be computed (S. Burckhardt et
    /// al., "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010).
    Pct {
        /// The number of points.
        changes: u32,
    },
    /// Both kinds in turn; the second with one to three changes.
    Mixed,
}

/// The number of schedules to try, and their kind.
#[derive(Clone, Debug)]
pub struct Exploration {
    strategy: Strategy,
    schedules: u64,
    at_least: u64,
    time: Duration,
    first_seed: u64,
    steps_max: u64,
}

impl Default for Exploration {
    /// A thousand schedules of both kinds, for ten seconds at most.
    fn default() -> Self {
        Self {
            strategy: Strategy::Mixed,
            schedules: 1000,
            at_least: 1,
            time: Duration::from_secs(10),
            first_seed: 1,
            steps_max: 50_000,
        }
    }
}

/// The schedules that were tried without a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// The number of schedules.
    pub schedules: u64,
    /// The number of steps in all of them.
    pub steps: u64,
}

/// A schedule under which a program fails.
#[derive(Clone, Debug)]
pub struct FailingSchedule {
    /// The seed of the schedule: with `MANYCORE_SEED` set to it, only this one is tried.
    pub seed: u64,
    /// The failure under this schedule.
    pub failure: Failure,
    /// The schedules that were tried before.
    pub before: Explored,
}

/// Tries a program with the schedules of [`Exploration::default`].
///
/// # Panics
///
/// If the program fails under one of them; the message has the seed.
#[track_caller]
pub fn check(program: impl Fn()) {
    Exploration::default().check(program);
}

/// One in this many schedules is repeated, to check that it has the same steps.
const REPEATED: u64 = 16;

impl Exploration {
    /// Sets how schedules are generated.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Sets the most schedules to try.
    pub fn schedules(mut self, schedules: u64) -> Self {
        self.schedules = schedules;
        self
    }

    /// Sets the fewest schedules to try. If there is not enough time for them,
    /// [`check`](Self::check) panics.
    pub fn at_least(mut self, schedules: u64) -> Self {
        self.at_least = schedules;
        self
    }

    /// Sets the limit of CPU time. On a busy machine the schedules take longer, but as many are
    /// tried.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the seed of the first schedule; each later schedule has the next seed.
    pub fn first_seed(mut self, seed: u64) -> Self {
        self.first_seed = seed;
        self
    }

    /// Sets the most steps of a schedule. One with more counts as a livelock.
    pub fn steps_max(mut self, steps: u64) -> Self {
        self.steps_max = steps;
        self
    }

    /// Tries the program.
    ///
    /// # Panics
    ///
    /// If the program fails under a schedule; the message has the seed. Also if [too
    /// few](Self::at_least) schedules were tried.
    #[track_caller]
    pub fn check(&self, program: impl Fn()) -> Explored {
        let explored = self.run(program).unwrap_or_else(|found| panic!("{found}"));
        let (tried, time) = (explored.schedules, self.time);
        assert!(
            tried >= self.at_least.min(self.schedules) || replayed().is_some(),
            "{tried} schedules in {time:?} of CPU time, and at least {} are needed: give more time, or make the program smaller",
            self.at_least
        );
        explored
    }

    /// Tries the program with several schedules, or with the one whose seed is in `MANYCORE_SEED`.
    ///
    /// # Errors
    ///
    /// The first schedule under which the program fails, or which has other steps when it is
    /// repeated.
    pub fn run(&self, program: impl Fn()) -> Result<Explored, FailingSchedule> {
        let (first, schedules) = match replayed() {
            Some(seed) => (seed, 1),
            None => (self.first_seed, self.schedules),
        };
        let start = cpu_time();
        let mut explored = Explored::default();
        for seed in (first..).take(schedules as usize) {
            let execution = self.execute(seed, &program);
            let failed = execution.failure.is_some();
            let found = |failure| FailingSchedule { seed, failure, before: explored };
            if (failed || seed % REPEATED == 0) && self.execute(seed, &program).differs(&execution)
            {
                let cause = Cause::Nondeterminism;
                return Err(found(Failure { cause, at: 0, blocked: Vec::new() }));
            }
            if let Some(failure) = execution.failure {
                return Err(found(failure));
            }
            explored.schedules += 1;
            explored.steps += execution.steps;
            if cpu_time() - start > self.time {
                break;
            }
        }
        Ok(explored)
    }

    fn execute(&self, seed: u64, program: &impl Fn()) -> Execution {
        SEED.set(Some(seed));
        let machine = machine();
        let policy = Policy::Explored(Box::new(engine::Explored::new(self.scheduler(seed))));
        let mut engine = Engine::new(&machine, seed, policy);
        engine.allow(crate::Placement::Scatter.cpus(&machine), true);
        engine.steps_left = self.steps_max;
        let before = arena::live();
        engine::run(&mut engine, program);
        if engine.failure.is_none() && arena::live() > before {
            engine.failure = Some(Cause::Leak { allocations: arena::live() - before });
        }
        let Policy::Explored(explored) = &engine.policy else { unreachable!("set above") };
        Execution {
            trace: explored.trace,
            start: engine.lease.start(),
            steps: self.steps_max - engine.steps_left,
            failure: engine.into_failure(),
        }
    }

    fn scheduler(&self, seed: u64) -> Box<dyn Scheduler> {
        match self.strategy {
            Strategy::Random => Box::new(Random::new(seed)),
            Strategy::Pct { changes } => Box::new(Pct::new(seed, changes)),
            Strategy::Mixed if seed.is_multiple_of(2) => Box::new(Random::new(seed)),
            Strategy::Mixed => Box::new(Pct::new(seed, 1 + (seed / 2 % 3) as u32)),
        }
    }
}

thread_local! {
    /// The seed of the last schedule that this host thread has tried.
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The seed of the last schedule that the calling host thread has tried, for messages of code that
/// aborts the program.
pub(crate) fn seed() -> Option<u64> {
    SEED.get()
}

/// The seed of the only schedule to be tried, if there is one.
fn replayed() -> Option<u64> {
    std::env::var("MANYCORE_SEED").ok().and_then(|seed| seed.parse().ok())
}

/// One execution of a program.
struct Execution {
    trace: u64,
    /// The start of its memory.
    start: usize,
    steps: u64,
    failure: Option<Failure>,
}

impl Execution {
    /// Whether its steps differ from those of another execution of the same schedule.
    fn differs(&self, other: &Self) -> bool {
        // If a caller keeps memory of the first execution, addresses differ, and so do traces.
        let cause =
            |execution: &Self| execution.failure.as_ref().map(|failure| failure.cause.clone());
        self.start == other.start && (self.trace, cause(self)) != (other.trace, cause(other))
    }
}

/// A machine with a CPU for each thread, on two sockets. Costs and caches play no part.
fn machine() -> Machine {
    let mut machine = Machine::example_with(Topology::uniform(2, 32, 1));
    let least = Capacity { bytes: 64, ways: 1 };
    (machine.caches.l1, machine.caches.l2, machine.caches.llc) = (least, least, least);
    machine
}

/// The commit of the sources, if they are in a repository.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

impl fmt::Display for FailingSchedule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let commit = commit().map_or(String::new(), |commit| format!(", commit {commit}"));
        let (seed, tried) = (self.seed, self.before.schedules);
        writeln!(f, "schedule {seed}{commit}, after {tried} others: {}", self.failure)?;
        write!(f, "MANYCORE_SEED={seed} tries this schedule only")
    }
}

impl std::error::Error for FailingSchedule {}

/// CPU time of the calling thread of the host.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, into `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
