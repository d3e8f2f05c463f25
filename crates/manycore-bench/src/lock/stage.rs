//! The stage of a slice on a simulated machine.

use manycore_sim::backend;
use manycore_sim::thread::{self, Phase as Doing};
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::cell::UnsafeCell;

use crate::contender::Contender;
use crate::contender::simulated::UsualRw;
use crate::mix::Latch;
use crate::simulated::{Count, Window};
use crate::slice::{Outcome, Phase, Runner, Stage, Step};

/// The time of an iteration of a thread's loop apart from its accesses, which are all that the
/// simulator sees: the loop, the counting, the calls. With this value the simulated loop takes as
/// long as the native one if no other thread wants the lock; see the chapter on accuracy.
const LOOP_NS: f64 = 1.0;

/// Locks and data in simulated memory; counters and the times of the phases outside of it.
struct SimulatedStage<'a, C> {
    locks: Vec<AnyGuarded<C>>,
    window: Window,
    loop_cycles: u64,
    counts: &'a [Count],
}

/// A stage with any kind of lock, so that little code is compiled for each kind.
pub(super) trait AnyStage {
    /// Does what a thread does until the slice stops.
    fn run(&self, runner: Runner) -> Outcome;

    /// The number of exclusive sections according to the data. All threads have ended.
    fn written(&self) -> u64;
}

/// Sets a stage with locks as the program uses them. To be called by the simulated program.
pub(super) fn set<'a, C: Contender>(
    locks: &[Latch],
    window: Window,
    ghz: f64,
    counts: &'a [Count],
) -> Box<dyn AnyStage + 'a> {
    Box::new(SimulatedStage::<C> {
        locks: locks.iter().map(AnyGuarded::new).collect(),
        window,
        loop_cycles: (LOOP_NS * ghz).round() as u64,
        counts,
    })
}

impl<C: Contender> AnyStage for SimulatedStage<'_, C> {
    fn run(&self, runner: Runner) -> Outcome {
        runner.run(self)
    }

    fn written(&self) -> u64 {
        self.locks.iter().map(AnyGuarded::written).sum()
    }
}

impl<C: Contender> Stage for SimulatedStage<'_, C> {
    fn is(&self, phase: Phase) -> bool {
        let now = thread::now();
        match phase {
            Phase::WarmUp => now < self.window.begin,
            Phase::Measure => (self.window.begin..self.window.end).contains(&now),
            Phase::Stop => now >= self.window.end,
        }
    }

    fn publish(&self, thread: usize, sections: u64) {
        self.counts[thread].note(self.window, sections);
        thread::compute(self.loop_cycles);
    }

    /// True time. Reading it costs nothing, so every wait is timed.
    fn now(&self) -> u64 {
        thread::now()
    }

    /// A turn is a cycle.
    fn work(&self, value: u64, iterations: u32) -> u64 {
        thread::compute(u64::from(iterations));
        value
    }

    fn sleep(&self, ns: f64) {
        backend::sleep(ns as u64);
    }

    fn section<R>(&self, step: Step, on_entry: impl FnOnce() -> R) -> (R, bool) {
        match &self.locks[step.lock as usize] {
            AnyGuarded::Asked(guarded) => guarded.section(step, on_entry),
            AnyGuarded::ReaderWriter(guarded) => guarded.section(step, on_entry),
        }
    }
}

/// A lock of the requested kind, or a reader-writer lock that is used beside it.
enum AnyGuarded<C> {
    Asked(Guarded<C>),
    ReaderWriter(Box<Guarded<UsualRw>>),
}

impl<C: Contender> AnyGuarded<C> {
    fn new(latch: &Latch) -> Self {
        match latch.shared {
            None => Self::Asked(Guarded::new(latch.data)),
            Some(_) => Self::ReaderWriter(Box::new(Guarded::new(latch.data))),
        }
    }

    fn written(&self) -> u64 {
        match self {
            Self::Asked(guarded) => guarded.written(),
            Self::ReaderWriter(guarded) => guarded.written(),
        }
    }
}

/// A lock and its data, on cache lines of their own.
struct Guarded<C> {
    lock: CachePadded<C>,
    data: CachePadded<UnsafeCell<Marks>>,
    /// What a section moves in addition to the marks.
    more: Lines,
}

/// One cache line that each section accesses, in the order of a native section.
#[derive(Clone, Copy, Default)]
struct Marks {
    begun: u64,
    ended: u64,
}

impl<C: Contender> Guarded<C> {
    fn new(lines: u32) -> Self {
        Self {
            lock: CachePadded(C::new()),
            data: CachePadded(UnsafeCell::default()),
            more: Lines::new(lines.saturating_sub(1)),
        }
    }

    fn section<R>(&self, step: Step, on_entry: impl FnOnce() -> R) -> (R, bool) {
        let inside = || {
            thread::phase(Doing::Work);
            let result = on_entry();
            let alone = match step.reads {
                true => self.read(step.section),
                false => self.write(step.section),
            };
            thread::phase(Doing::Lock);
            (result, alone)
        };
        thread::in_phase(Doing::Lock, || match step.reads {
            true => self.lock.shared(inside),
            false => self.lock.exclusive(inside),
        })
    }

    fn written(&self) -> u64 {
        self.lock.exclusive(|| self.marks().0)
    }

    fn marks(&self) -> (u64, u64) {
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access. The marks show whether another thread is in the section.
        let marks = self.data.with(|data| unsafe { *data });
        (marks.begun, marks.ended)
    }

    /// An exclusive section, with the lock held. Returns whether this thread was alone.
    fn write(&self, iterations: u32) -> bool {
        let (begun, ended) = self.marks();
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        self.data.with_mut(|data| unsafe { (*data).begun = begun + 1 });
        self.more.update();
        thread::compute(u64::from(iterations));
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        self.data.with_mut(|data| unsafe { (*data).ended = ended + 1 });
        begun == ended
    }

    /// A section that only reads, with the lock held for reading. Returns whether no writer was in
    /// its section.
    fn read(&self, iterations: u32) -> bool {
        let before = self.marks();
        self.more.read();
        thread::compute(u64::from(iterations));
        before.0 == before.1 && before == self.marks()
    }
}

/// Cache lines that a section reads one after the other, like the nodes of a list. It also writes
/// them if it is exclusive.
struct Lines(Box<[CachePadded<UnsafeCell<u64>>]>);

impl Lines {
    fn new(count: u32) -> Self {
        Self((0..count).map(|_| CachePadded(UnsafeCell::default())).collect())
    }

    fn update(&self) {
        for line in &self.0 {
            // Two accesses: a store alone would be hidden by the store buffer.
            // SAFETY: all simulated threads are one thread of the host, and none stops within this
            // access.
            let count = line.with(|line| unsafe { *line });
            // SAFETY: all simulated threads are one thread of the host, and none stops within this
            // access.
            line.with_mut(|line| unsafe { *line = count + 1 });
        }
    }

    fn read(&self) -> u64 {
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        self.0.iter().map(|line| line.with(|line| unsafe { *line })).sum()
    }
}
