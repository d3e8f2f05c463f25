//! What each thread of a slice does.

use std::sync::Arc;

use hdrhistogram::Histogram;
use manycore::sync::atomic::Ordering;
use manycore::sync::clock;

use super::Settings;
use super::arena::{Arena, Phase};
use super::plan::{self, Step};
use crate::contender::Contender;
use crate::waits;
use crate::work::work;

/// A thread that has not started.
pub(super) struct Runner<C> {
    arena: Arc<Arena<C>>,
    index: usize,
    cpu: Option<usize>,
    steps: Box<[Step]>,
    sample: u32,
    outcome: Outcome,
}

/// What a thread has to tell when it ends.
pub(super) struct Outcome {
    /// Timed waits, in ticks.
    pub waits: Histogram<u64>,
    /// Exclusive sections, from the first to the last.
    pub written: u64,
    /// Sections in which the thread was not alone.
    pub violations: u64,
    /// Why the thread could not run as asked.
    pub error: Option<String>,
}

impl Outcome {
    fn new() -> Self {
        Self { waits: waits::recorder(), written: 0, violations: 0, error: None }
    }

    /// Of a thread that failed in a way that the benchmark does not foresee; it has said how on standard error.
    pub fn panicked() -> Self {
        Self { error: Some("a thread of the benchmark panicked".into()), ..Self::new() }
    }
}

impl<C: Contender> Runner<C> {
    pub fn new(
        arena: Arc<Arena<C>>,
        index: usize,
        cpu: Option<usize>,
        settings: &Settings,
    ) -> Self {
        let steps = plan::draw(settings, index);
        let sample = settings.sample.max(1);
        Self { arena, index, cpu, steps, sample, outcome: Outcome::new() }
    }

    pub fn run(mut self) -> Outcome {
        if let Some(Err(error)) = self.cpu.map(crate::cpus::pin) {
            self.outcome.error = Some(format!("cannot keep a thread on its CPU: {error}"));
        }
        self.arena.barrier.wait();
        self.work_until_stopped();
        self.outcome
    }

    fn work_until_stopped(&mut self) {
        let mut value = self.index as u64;
        let mut done = 0;
        let mut until_sample = self.sample;
        for turn in 0.. {
            if self.arena.is(Phase::Stop) {
                break;
            }
            let step = self.steps[turn % self.steps.len()];
            until_sample -= 1;
            if until_sample == 0 && self.arena.is(Phase::Measure) {
                self.timed_section(step);
            } else {
                self.section(step, || ());
            }
            if until_sample == 0 {
                until_sample = self.sample;
            }
            done += 1;
            self.arena.progress[self.index].store(done, Ordering::Relaxed); // Relaxed: as in `Arena::read`
            value = std::hint::black_box(work(value, step.outside));
        }
    }

    #[inline]
    fn timed_section(&mut self, step: Step) {
        let asked = clock::now();
        let got = self.section(step, clock::now);
        // Counters of two CPUs can differ by some ticks.
        self.outcome.waits.saturating_record(got.saturating_sub(asked));
    }

    /// One section, with something to do as soon as the lock is held.
    #[inline]
    fn section<R>(&mut self, step: Step, on_entry: impl FnOnce() -> R) -> R {
        let guarded = &self.arena.locks[step.lock as usize];
        let (result, alone) = if step.reads {
            guarded.lock.shared(|| (on_entry(), guarded.read(step.section)))
        } else {
            guarded.lock.exclusive(|| (on_entry(), guarded.write(step.section)))
        };
        self.outcome.written += u64::from(!step.reads);
        self.outcome.violations += u64::from(!alone);
        result
    }
}
