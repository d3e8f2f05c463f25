//! What the threads of a slice share.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use manycore::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use manycore::sync::{CachePadded, clock};

use super::{Outcome, Phase, Runner, Stage, Step};
use crate::contender::Contender;
use crate::mix::Latch;
use crate::work::work;

/// The flag that ends the slice, and the counters: the parts that do not depend on the kind of
/// lock.
pub(super) struct Course {
    /// All threads and the one that started them.
    pub barrier: Barrier,
    phase: CachePadded<AtomicU32>,
    /// Sections that each thread has run so far.
    progress: Vec<CachePadded<AtomicU64>>,
}

/// The counters at one moment.
pub(super) struct Reading {
    pub time: Instant,
    pub ticks: u64,
    pub counts: Vec<u64>,
}

impl Course {
    pub fn new(threads: u32) -> Self {
        Self {
            barrier: Barrier::new(threads as usize + 1),
            phase: CachePadded(AtomicU32::new(Phase::WarmUp as u32)),
            progress: (0..threads).map(|_| CachePadded(AtomicU64::new(0))).collect(),
        }
    }

    pub fn set_phase(&self, phase: Phase) {
        // Relaxed: the phase orders nothing. A thread that sees a new one late runs a section more.
        self.phase.store(phase as u32, Ordering::Relaxed);
    }

    pub fn read(&self) -> Reading {
        // Relaxed: a count that lacks the section of this moment is as good.
        let count = |progress: &CachePadded<AtomicU64>| progress.load(Ordering::Relaxed);
        Reading {
            time: Instant::now(),
            ticks: clock::now(),
            counts: self.progress.iter().map(count).collect(),
        }
    }
}

/// Locks of some kind. A thread uses them in one call from its start to its end. So there is no
/// indirect call between its loop and the lock, and little code is compiled for each kind.
pub(super) trait Locks: Send + Sync {
    /// Does what a thread does until the slice stops.
    fn run(&self, course: &Course, runner: Runner) -> Outcome;

    /// The number of exclusive sections according to the data. All threads have ended.
    fn written(&self) -> u64;
}

/// The locks.
pub(super) struct Arena<C>(Box<[Guarded<C>]>);

impl<C: Contender> Arena<C> {
    pub fn new(locks: &[Latch]) -> Self {
        Self(locks.iter().map(|latch| Guarded::new(latch.data)).collect())
    }
}

impl<C: Contender> Locks for Arena<C> {
    fn run(&self, course: &Course, runner: Runner) -> Outcome {
        runner.run(&Here { locks: &self.0, course })
    }

    fn written(&self) -> u64 {
        self.0.iter().map(|guarded| guarded.lock.exclusive(|| guarded.marks().0)).sum()
    }
}

/// Where a thread is.
struct Here<'a, C> {
    locks: &'a [Guarded<C>],
    course: &'a Course,
}

impl<C: Contender> Stage for Here<'_, C> {
    #[inline]
    fn is(&self, phase: Phase) -> bool {
        // Relaxed: as in `set_phase`.
        self.course.phase.load(Ordering::Relaxed) == phase as u32
    }

    #[inline]
    fn publish(&self, thread: usize, sections: u64) {
        self.course.progress[thread].store(sections, Ordering::Relaxed); // Relaxed: as in `read`
    }

    #[inline]
    fn now(&self) -> u64 {
        clock::now()
    }

    #[inline]
    fn work(&self, value: u64, iterations: u32) -> u64 {
        std::hint::black_box(work(value, iterations))
    }

    fn sleep(&self, ns: f64) {
        std::thread::sleep(Duration::from_nanos(ns as u64));
    }

    #[inline]
    fn section<R>(&self, step: Step, on_entry: impl FnOnce() -> R) -> (R, bool) {
        let guarded = &self.locks[step.lock as usize];
        match step.reads {
            true => guarded.lock.shared(|| (on_entry(), guarded.read(step.section))),
            false => guarded.lock.exclusive(|| (on_entry(), guarded.write(step.section))),
        }
    }
}

/// A lock and its data, on cache lines of their own.
struct Guarded<C> {
    lock: CachePadded<C>,
    data: CachePadded<UnsafeCell<Data>>,
    /// What a section moves in addition to that.
    more: Lines,
}

/// One cache line that each section touches.
#[derive(Default)]
struct Data {
    /// The numbers of exclusive sections that have begun and ended. They are equal whenever no
    /// thread is in one.
    begun: u64,
    ended: u64,
    /// What the work of the sections comes to.
    value: u64,
}

// SAFETY: the data is reached through `write` and `read` only, which run under the lock. The
// accesses are volatile, so that a lock that lets two threads in is found by its effect on the
// marks.
unsafe impl<C: Contender> Sync for Guarded<C> {}

impl<C: Contender> Guarded<C> {
    fn new(lines: u32) -> Self {
        Self {
            lock: CachePadded(C::new()),
            data: CachePadded(UnsafeCell::default()),
            more: Lines::new(lines.saturating_sub(1)),
        }
    }

    fn marks(&self) -> (u64, u64) {
        let data = self.data.get();
        // SAFETY: the pointer is valid; the lock under test decides which other threads may access
        // it.
        unsafe {
            ((&raw const (*data).begun).read_volatile(), (&raw const (*data).ended).read_volatile())
        }
    }

    /// An exclusive section. The caller holds the lock. Returns whether this thread was alone.
    #[inline]
    fn write(&self, iterations: u32) -> bool {
        let (begun, ended) = self.marks();
        let data = self.data.get();
        // SAFETY: the pointer is valid, and the caller holds the lock.
        unsafe {
            (&raw mut (*data).begun).write_volatile(begun + 1);
            let value = (&raw const (*data).value).read_volatile().wrapping_add(self.more.update());
            (&raw mut (*data).value).write_volatile(work(value, iterations));
            (&raw mut (*data).ended).write_volatile(ended + 1);
        }
        begun == ended
    }

    /// A section that only reads. The caller holds the lock for reading. Returns whether no writer
    /// was in its section.
    #[inline]
    fn read(&self, iterations: u32) -> bool {
        let before = self.marks();
        // SAFETY: the pointer is valid, and the caller holds the lock for reading.
        let value = unsafe { (&raw const (*self.data.get()).value).read_volatile() };
        std::hint::black_box(work(value.wrapping_add(self.more.read()), iterations));
        before.0 == before.1 && before == self.marks()
    }
}

/// Cache lines that a section reads. It also writes them if it is exclusive.
///
/// They form a list, so each access depends on the one before it, as in a structure of nodes: if a
/// processor knew the addresses, it would load the lines at the same time.
struct Lines(Box<[CachePadded<UnsafeCell<Line>>]>);

struct Line {
    /// The number of the line after this one.
    next: usize,
    count: u64,
}

impl Lines {
    fn new(count: u32) -> Self {
        let line = |next| CachePadded(UnsafeCell::new(Line { next, count: 0 }));
        Self((1..=count as usize).map(line).collect())
    }

    /// To be called with the lock held.
    #[inline]
    fn update(&self) -> u64 {
        self.sum(|line| {
            // SAFETY: the pointer is valid, and the caller holds the lock.
            unsafe {
                let count = (&raw const (*line).count).read_volatile() + 1;
                (&raw mut (*line).count).write_volatile(count);
                count
            }
        })
    }

    /// To be called with the lock held for reading.
    #[inline]
    fn read(&self) -> u64 {
        // SAFETY: the pointer is valid, and the caller holds the lock for reading.
        self.sum(|line| unsafe { (&raw const (*line).count).read_volatile() })
    }

    /// The sum of the numbers in the lines, one after the other. The caller holds the lock, at
    /// least for reading.
    #[inline]
    fn sum(&self, find: impl Fn(*mut Line) -> u64) -> u64 {
        let (mut at, mut sum) = (0, 0);
        while let Some(line) = self.0.get(at) {
            let line = line.get();
            sum += find(line);
            // SAFETY: the pointer is valid, and no thread writes this.
            at = unsafe { (&raw const (*line).next).read_volatile() };
        }
        sum
    }
}
