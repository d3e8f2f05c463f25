//! What a thread does.

use std::time::Duration;

use hdrhistogram::Histogram;
use manycore_traits::Interval;
use serde::{Deserialize, Serialize};

use super::any_map::{AnyMap, Handle};
use crate::popularity::Popularity;
use crate::waits;

/// Intervals lie between 0 and this number, and have this length.
const SPAN: u64 = 1 << 20;
const LENGTH: u64 = 16;

/// What threads share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// Trees of intervals.
    #[default]
    Trees,
    /// Queues. An update adds an item, or takes back the last one if objects are reused. Other
    /// operations take many items.
    Queue,
    /// Stacks, the same.
    Stack,
}

impl Shape {
    /// As records have it.
    pub(super) fn structure(self) -> &'static str {
        match self {
            Self::Trees => "interval-tree",
            Self::Queue => "queue",
            Self::Stack => "stack",
        }
    }
}

/// The operations of threads, except for the share of updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What threads share.
    pub shape: Shape,
    /// The number of trees, or the structure that replaces them.
    pub trees: u32,
    /// The number of intervals of each tree that stay, so that trees are deep.
    pub initial: u32,
    /// Intervals that a thread has at a time.
    pub held: u32,
    /// Whether a thread inserts and removes the same intervals again and again, and not fresh ones.
    pub reuse: bool,
    /// What a thread does between two operations, in nanoseconds.
    pub outside_ns: f64,
    /// After this long an update does what was deferred.
    pub tend: Duration,
    /// Which trees are updated and read.
    pub popularity: Popularity,
    /// The number of operations of each thread at which the run ends, whatever time that takes;
    /// `None` if a time ends the run.
    pub operations: Option<u64>,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            shape: Shape::Trees,
            trees: 1,
            initial: 1_000,
            held: 16,
            reuse: false,
            outside_ns: 0.0,
            tend: Duration::from_millis(1),
            popularity: Popularity::Uniform,
            operations: None,
            seed: 1,
        }
    }
}

/// Where a thread works.
pub(super) trait Stage {
    /// Whether an operation that begins now is counted; none at the end.
    fn counted(&self) -> Option<bool>;

    /// The time, in nanoseconds or in ticks.
    fn now(&self) -> u64;

    /// The work between two operations; the first of these updates or does not.
    fn outside(&self, updates: bool);

    /// The ticks of the facade's clock after which an update applies the deferred ones.
    fn tend_ticks(&self) -> u64;

    /// Bytes that the program has allocated.
    fn memory(&self) -> u64;
}

/// A thread.
pub(super) struct Worker<'a> {
    /// Its number.
    pub me: u32,
    /// The share of its operations that update, in percent.
    pub update: f64,
    /// One of this many operations is timed.
    pub sample: u64,
    /// The trees of the operations, in order; random ones if this is empty.
    pub trees: &'a [u64],
    /// The memory for what is recorded.
    pub outcome: Outcome,
}

/// A thread's results in the counted time.
#[derive(Clone)]
pub(super) struct Outcome {
    pub operations: u64,
    /// Operations, those before among them.
    pub all: u64,
    /// The time of one of `sample` operations.
    pub times: Histogram<u64>,
    /// When it ended.
    pub ended: u64,
    /// Bytes that the program had allocated then.
    pub memory: u64,
}

impl Outcome {
    pub fn new() -> Self {
        Self { operations: 0, all: 0, times: waits::recorder(), ended: 0, memory: 0 }
    }
}

/// The number of trees that are drawn before the start if their popularity differs. Then the
/// sequence repeats.
const DRAWN: usize = 1 << 16;

impl Load {
    /// The number of intervals once they are [filled](Self::fill) in.
    pub(super) fn filled(&self, map: &dyn AnyMap) -> u64 {
        let trees = if self.shape == Shape::Trees { map.trees() } else { 0 };
        trees as u64 * u64::from(self.initial)
    }

    /// Inserts the intervals that stay while threads work, in every tree; a queue or a stack begins
    /// empty. They stay until the returned value is dropped. None of these insertions remains
    /// deferred, so the pending operations that threads find are their own.
    pub(super) fn fill<'a>(&self, map: &'a dyn AnyMap) -> Box<dyn Handle + 'a> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut filler = map.handle(map.trees() * self.initial as usize, false);
        let filled = if self.shape == Shape::Trees { map.trees() } else { 0 };
        for tree in 0..filled {
            for order in 0..u64::from(self.initial) {
                filler.update(tree, interval(&mut random, order));
                map.overlaps(tree, 0, &mut |_| ());
            }
        }
        filler
    }

    /// Checks that each tree has the intervals of [`fill`](Self::fill) and none of the threads that
    /// have worked, and can insert and remove one more. The error describes the fault. Queues and
    /// stacks keep the threads' items, and are not checked.
    pub(super) fn verify(&self, map: &dyn AnyMap) -> Result<(), String> {
        for tree in 0..map.trees() {
            let mut handle = map.handle(1, false);
            let has = |what: &str, expected: usize| match map.count(tree) {
                Some(found) if found != expected => Err(format!(
                    "tree {tree} has {found} intervals, and should have {expected} {what}"
                )),
                _ => Ok(()),
            };
            let filled = self.initial as usize;
            has("after the threads' last was removed", filled)?;
            let one = Interval { first: SPAN, order: 0, last: SPAN };
            handle.update(tree, one);
            has("after one more was inserted", filled + 1)?;
            handle.update(tree, one);
            has("after that was removed", filled)?;
        }
        Ok(())
    }

    /// The requested trees, which each thread takes in turn; none if all trees are used alike.
    pub(super) fn trees_drawn(&self) -> Box<[u64]> {
        let mut random = fastrand::Rng::with_seed(!self.seed);
        self.popularity.ranks(self.trees.into()).draw(DRAWN, &mut random)
    }

    /// Works until the stage is over, or the thread has done all of its operations.
    pub(super) fn run<S: Stage>(&self, map: &dyn AnyMap, worker: Worker<'_>, stage: &S) -> Outcome {
        let Worker { me, update, sample, trees: drawn, mut outcome } = worker;
        let limit = self.operations.unwrap_or(u64::MAX);
        let mut random = fastrand::Rng::with_seed(self.seed.wrapping_add(1 + u64::from(me)));
        let mut handle = map.handle(self.held as usize, self.reuse);
        let trees = map.trees();
        let mut number = u64::from(me) << 32;
        let mut sum = 0_u64;
        // Threads begin far from each other.
        let mut next = me as usize * 0x9e37;
        while outcome.operations < limit
            && let Some(counted) = stage.counted()
        {
            number += 1;
            let timed = (counted && number.is_multiple_of(sample)).then(|| stage.now());
            let tree = if drawn.is_empty() {
                random.usize(..trees)
            } else {
                next = (next + 1) % drawn.len();
                drawn[next] as usize
            };
            let updates = random.f64() * 100.0 < update;
            if !updates {
                map.overlaps(tree, random.u64(..SPAN), &mut |interval| sum += interval.last);
            } else {
                handle.update(tree, interval(&mut random, number));
                map.tend(tree, stage.tend_ticks());
            }
            if let Some(start) = timed {
                outcome.times.saturating_record(stage.now().saturating_sub(start).max(1));
            }
            outcome.operations += u64::from(counted);
            outcome.all += 1;
            stage.outside(updates);
        }
        std::hint::black_box(sum);
        // While it still has its intervals.
        (outcome.ended, outcome.memory) = (stage.now(), stage.memory());
        outcome
    }
}

fn interval(random: &mut fastrand::Rng, order: u64) -> Interval {
    let first = random.u64(..SPAN);
    Interval { first, order, last: first + LENGTH - 1 }
}
