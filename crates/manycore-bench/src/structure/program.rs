//! A simulated program whose threads use a structure.
//!
//! The first thread fills the structure, and does some operations alone, so that adaptive
//! mechanisms have adapted before the other threads start; that takes simulated time that is not
//! counted. Random numbers are drawn before, outside of the simulation, so they do not count as the
//! structure's memory.

use std::cell::Cell;
use std::collections::BTreeMap;

use manycore_sim::thread;

use crate::counts::Counts;
use crate::simulated::{Count, Finding, Run, Window, sight};
use crate::slice::Outcome;

/// Operations of the first thread before the others start: more than the 2,000 or so after which
/// MV-RLU decides whether commits or snapshots wait for clocks.
const ALONE: u32 = 5_000;

/// A structure, and what its threads do.
pub(crate) trait SimulatedUse {
    /// What a thread does, as it was drawn.
    type Operations;

    /// What a thread has to tell at its end.
    type Tally: Clone;

    /// A thread that uses the structure.
    type Actor<'a>: SimulatedActor<Self::Tally>
    where
        Self: 'a;

    /// The calling thread's access, by its number.
    fn actor(&self, thread: u32, operations: Self::Operations) -> Self::Actor<'_>;

    /// Visits what the mechanism has counted.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));

    /// Checks that the structure has the contents that follow from the threads' results, including
    /// those of the thread that was alone. Returns further observations of the run, by metric, for
    /// each of these operations.
    fn verify(
        &self,
        tallies: &[Self::Tally],
        operations: u64,
    ) -> Result<BTreeMap<String, f64>, String>;
}

/// A thread that uses a structure.
pub(crate) trait SimulatedActor<T> {
    /// Inserts the initial contents, with [`thread::progress`] after each insertion.
    fn fill(&mut self);

    /// Executes the next operation. Returns its time apart from its accesses, in nanoseconds.
    fn act(&mut self) -> f64;

    /// What it has to tell.
    fn tally(&self) -> T;
}

/// How the threads are to be simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Simulated {
    pub threads: u32,
    /// The number of operations of each thread; `None` if a time bounds them.
    pub operations: Option<u64>,
    /// How many keys there are at the start.
    pub keys: u64,
}

/// What the simulated program leaves.
#[derive(Clone)]
struct Left {
    outcomes: Vec<Outcome>,
    statistics: BTreeMap<String, f64>,
    more: BTreeMap<String, f64>,
    window: Window,
    /// Bytes of the filled structure.
    filled: usize,
    /// Bytes beyond those, when threads ended.
    garbage: usize,
}

/// Runs the simulation. `operations` returns the operations of a thread by its number, and those of
/// a thread that is alone.
pub(crate) fn simulate<U: SimulatedUse>(
    run: &Run,
    how: Simulated,
    operations: impl Fn(u32) -> U::Operations,
    make: impl FnOnce() -> Result<U, String>,
) -> Result<Finding, String> {
    let outside = Outside::<U> {
        counts: (0..how.threads).map(|_| Count::default()).collect(),
        drawn: (0..how.threads)
            .map(|thread| Cell::new(Some((operations(thread), Outcome::new()))))
            .collect(),
        alone: Cell::new(Some(operations(u32::MAX))),
        tallies: (0..=how.threads).map(|_| Cell::default()).collect(),
    };
    let report = run.simulate(|| {
        let empty = thread::heap_bytes();
        let used = make()?;
        Work { run, how, empty, outside: &outside }.on(&used)
    })?;
    let left = report.result.as_ref().map_err(Clone::clone)?;
    let counted = outside.counts.iter().map(Count::counted).collect();
    let slice = run.slice(left.window, counted, left.outcomes.iter().map(|outcome| &outcome.waits));
    let operations = left.outcomes.iter().map(|outcome| outcome.sections).sum::<u64>().max(1);
    let mut sight = sight(&report, operations);
    sight.insert("bytes_per_key".to_owned(), left.filled as f64 / how.keys.max(1) as f64);
    sight.insert("garbage".to_owned(), left.garbage as f64);
    let each = |(name, count): (&String, &f64)| (format!("count_{name}"), *count);
    sight.extend(left.statistics.iter().map(each));
    sight.extend(left.more.clone());
    Ok(Finding { slice, sight })
}

/// A thread's operations, and what it records.
type Drawn<U> = Cell<Option<(<U as SimulatedUse>::Operations, Outcome)>>;

/// What is in no simulated memory.
struct Outside<U: SimulatedUse> {
    counts: Vec<Count>,
    /// Operations that were drawn, until the thread takes them.
    drawn: Vec<Drawn<U>>,
    alone: Cell<Option<U::Operations>>,
    /// For each thread, its tally when it was last alone.
    tallies: Vec<Cell<Option<U::Tally>>>,
}

/// The simulated program.
struct Work<'a, U: SimulatedUse> {
    run: &'a Run<'a>,
    how: Simulated,
    /// Bytes that the program had allocated without the structure.
    empty: usize,
    outside: &'a Outside<U>,
}

impl<U: SimulatedUse> Work<'_, U> {
    /// To be called by the first thread.
    fn on(&self, used: &U) -> Result<Left, String> {
        let (outside, threads) = (self.outside, self.how.threads);
        let alone = outside.alone.take().expect("one thread is alone");
        let mut actor = used.actor(0, alone);
        actor.fill();
        let full = thread::heap_bytes();
        for _ in 0..ALONE {
            thread::progress();
            actor.act();
        }
        outside.tallies[threads as usize].set(Some(actor.tally()));
        drop(actor);
        let kept = thread::heap_bytes();
        let counts = Counts::read(|visit| used.statistics(visit));
        let own = thread::heap_bytes() - kept;
        let begin = thread::now();
        let mut window = match self.how.operations {
            Some(_) => Window::endless(begin),
            None => self.run.window(begin),
        };
        let (memory, ended) = (Cell::new(full + own), Cell::new(begin));
        let outcomes = thread::parallel(threads, |index| {
            let drawn = outside.drawn[index as usize].take();
            let (operations, outcome) = drawn.expect("each thread runs once");
            let mut actor = used.actor(index, operations);
            let outcome = self.thread(&mut actor, index, window, outcome);
            outside.tallies[index as usize].set(Some(actor.tally()));
            // Read while the thread still has its handle, so that its memory counts.
            memory.set(memory.get().max(thread::heap_bytes()));
            ended.set(ended.get().max(thread::now()));
            outcome
        });
        window.end = window.end.min(ended.get());
        let done = outcomes.iter().map(|outcome| outcome.sections).sum();
        let tallies: Vec<U::Tally> = outside.tallies.iter().filter_map(Cell::take).collect();
        let more = used.verify(&tallies, done + u64::from(ALONE))?;
        let statistics = Counts::read(|visit| used.statistics(visit)).since(&counts, done);
        let (filled, garbage) = (full.saturating_sub(self.empty), memory.get() - (full + own));
        Ok(Left { outcomes, statistics, more, window, filled, garbage })
    }

    /// What one thread does.
    fn thread(
        &self,
        actor: &mut U::Actor<'_>,
        index: u32,
        window: Window,
        mut outcome: Outcome,
    ) -> Outcome {
        let limit = self.how.operations.unwrap_or(u64::MAX);
        loop {
            let begin = thread::now();
            if begin >= window.end || outcome.sections == limit {
                return outcome;
            }
            let beside_ns = actor.act();
            thread::compute((beside_ns * self.run.ghz()).round() as u64);
            outcome.sections += 1;
            if begin >= window.begin {
                outcome.waits.saturating_record(thread::now() - begin);
            }
            self.outside.counts[index as usize].note(window, outcome.sections);
        }
    }
}
