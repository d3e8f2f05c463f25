//! What each thread of a slice does.

use hdrhistogram::Histogram;

use super::plan::{self, Step};
use super::{Phase, Settings, Stage};
use crate::waits;

/// A thread that has not started.
#[derive(Clone, Debug)]
pub(crate) struct Runner {
    index: usize,
    steps: Box<[Step]>,
    sample: u32,
    /// Sections after which the thread sleeps; none if it never does.
    operation: Option<u64>,
    think_ns: f64,
    outcome: Outcome,
}

/// What a thread has to tell when it ends.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Timed waits, in ticks.
    pub waits: Histogram<u64>,
    /// Sections, from the first to the last.
    pub sections: u64,
    /// The exclusive ones among them.
    pub written: u64,
    /// Sections in which the thread was not alone.
    pub violations: u64,
    /// Why the thread could not run as asked.
    pub error: Option<String>,
}

impl Outcome {
    pub fn new() -> Self {
        Self { waits: waits::recorder(), sections: 0, written: 0, violations: 0, error: None }
    }

    /// Of a thread that could not run as asked.
    pub fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::new() }
    }
}

impl Runner {
    pub fn new(index: usize, settings: &Settings) -> Self {
        let mix = &settings.mix;
        Self {
            index,
            steps: plan::draw(settings, index),
            sample: settings.sample.max(1),
            operation: (mix.think_ns > 0.0).then_some(u64::from(mix.sections.max(1))),
            think_ns: mix.think_ns,
            outcome: Outcome::new(),
        }
    }

    /// Works until the slice stops.
    pub fn run<S: Stage>(mut self, stage: &S) -> Outcome {
        let mut value = self.index as u64;
        let mut done = 0;
        let mut until_sample = self.sample;
        for turn in 0.. {
            if stage.is(Phase::Stop) {
                break;
            }
            let step = self.steps[turn % self.steps.len()];
            until_sample -= 1;
            if until_sample == 0 && stage.is(Phase::Measure) {
                self.timed_section(stage, step);
            } else {
                self.section(stage, step, || ());
            }
            if until_sample == 0 {
                until_sample = self.sample;
            }
            done += 1;
            stage.publish(self.index, done);
            value = stage.work(value, step.outside);
            if self.operation.is_some_and(|sections| done.is_multiple_of(sections)) {
                stage.sleep(self.think_ns);
            }
        }
        self.outcome.sections = done;
        self.outcome
    }

    #[inline]
    fn timed_section<S: Stage>(&mut self, stage: &S, step: Step) {
        let asked = stage.now();
        let got = self.section(stage, step, || stage.now());
        // Counters of two CPUs can differ by some ticks.
        self.outcome.waits.saturating_record(got.saturating_sub(asked));
    }

    #[inline]
    fn section<S: Stage, R>(&mut self, stage: &S, step: Step, on_entry: impl FnOnce() -> R) -> R {
        let (result, alone) = stage.section(step, on_entry);
        self.outcome.written += u64::from(!step.reads);
        self.outcome.violations += u64::from(!alone);
        result
    }
}
