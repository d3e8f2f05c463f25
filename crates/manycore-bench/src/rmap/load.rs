//! What a thread does.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use manycore_traits::{Interval, ReverseMap};

/// Intervals lie between 0 and this number, and cover so many.
const SPAN: u64 = 1 << 20;
const LENGTH: u64 = 16;

/// A thread's share of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub trees: u32,
    /// Intervals of each tree that stay.
    pub initial: u32,
    /// Intervals that a thread has at a time.
    pub held: u32,
    pub reuse: bool,
    /// The share of operations that read, in percent.
    pub reads: f64,
    pub seed: u64,
}

/// Where a thread works.
pub(crate) trait Stage {
    /// Whether an operation that begins now is counted; none at the end.
    fn counted(&self) -> Option<bool>;

    /// The time, in nanoseconds or in ticks.
    fn now(&self) -> u64;

    /// What is between two operations.
    fn outside(&self);

    /// After how many ticks of the facade's clock an update does what was put off.
    fn tend_ticks(&self) -> u64;
}

/// What a thread did in the time that is counted.
#[derive(Clone)]
pub(crate) struct Outcome {
    pub operations: u64,
    /// The time of one of `sample` operations.
    pub times: Histogram<u64>,
}

/// An interval of a thread.
enum Owned<A, P> {
    Absent(A),
    Present(P),
}

impl Load {
    /// Intervals that stay while threads work, in every tree.
    pub fn fill<'a, M: ReverseMap>(&self, map: &'a M) -> Vec<M::Present<'a>> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut filled = Vec::with_capacity((self.trees * self.initial) as usize);
        for tree in 0..map.trees() {
            for order in 0..u64::from(self.initial) {
                filled.push(map.insert(map.interval(tree, interval(&mut random, order))));
            }
        }
        filled
    }

    /// Works until the stage says that it is over. `outcome` has the memory for what is recorded.
    pub fn run<M: ReverseMap, S: Stage>(
        &self,
        map: &M,
        me: u32,
        sample: u64,
        stage: &S,
        mut outcome: Outcome,
    ) -> Outcome {
        let mut random = fastrand::Rng::with_seed(self.seed.wrapping_add(1 + u64::from(me)));
        let mut owned = VecDeque::with_capacity(self.held as usize + 1);
        let mut number = u64::from(me) << 32;
        let mut sum = 0_u64;
        while let Some(counted) = stage.counted() {
            number += 1;
            let timed = (counted && number.is_multiple_of(sample)).then(|| stage.now());
            let tree = random.usize(..map.trees());
            if random.f64() * 100.0 < self.reads {
                let at = random.u64(..SPAN);
                map.overlaps(tree, at, at, &mut |interval| sum += interval.last);
            } else {
                self.update(map, tree, number, &mut owned, &mut random);
                map.tend(tree, stage.tend_ticks());
            }
            if let Some(start) = timed {
                outcome.times.saturating_record(stage.now().saturating_sub(start).max(1));
            }
            outcome.operations += u64::from(counted);
            stage.outside();
        }
        std::hint::black_box(sum);
        outcome
    }

    /// Inserts an interval or removes one.
    fn update<'a, M: ReverseMap>(
        &self,
        map: &'a M,
        tree: usize,
        number: u64,
        owned: &mut VecDeque<Owned<M::Absent<'a>, M::Present<'a>>>,
        random: &mut fastrand::Rng,
    ) {
        if owned.len() < self.held as usize {
            let fresh = map.interval(tree, interval(random, number));
            owned.push_back(Owned::Present(map.insert(fresh)));
            return;
        }
        match owned.pop_front() {
            Some(Owned::Absent(absent)) => owned.push_back(Owned::Present(map.insert(absent))),
            Some(Owned::Present(present)) if self.reuse => {
                owned.push_back(Owned::Absent(map.remove(present)));
            }
            // Removed, and gone.
            oldest => drop(oldest),
        }
    }
}

fn interval(random: &mut fastrand::Rng, order: u64) -> Interval {
    let first = random.u64(..SPAN);
    Interval { first, order, last: first + LENGTH - 1 }
}
