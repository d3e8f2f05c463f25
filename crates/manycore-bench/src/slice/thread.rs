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
    operations: Operations,
    think_ns: f64,
    outcome: Outcome,
}

/// The thread's position in its operations. It sleeps after each. If it never sleeps, all its work
/// is one operation.
#[derive(Clone, Debug)]
struct Operations {
    sections: u64,
    /// The remaining steps of this operation, without the updating steps that may follow.
    left: u64,
    updating: u64,
    updates: Option<Updates>,
}

/// Operations that go on to update what others read.
#[derive(Clone, Debug)]
struct Updates {
    steps: Box<[Step]>,
    sections: u64,
    /// The share of all operations, from 0 to 1.
    share: f64,
    random: fastrand::Rng,
}

impl Operations {
    fn new(index: usize, settings: &Settings) -> Self {
        let mix = &settings.mix;
        let updates = mix.updating.as_ref().map(|updating| Updates {
            steps: plan::draw(
                &Settings { mix: mix.to_update(updating), ..settings.clone() },
                index,
            ),
            sections: u64::from(updating.sections),
            share: updating.share / 100.0,
            random: fastrand::Rng::with_seed(settings.seed ^ (index as u64 + 1)),
        });
        let sections = match mix.think_ns > 0.0 {
            true => u64::from(mix.sections.max(1)),
            false => u64::MAX,
        };
        let mut operations = Self { sections, left: 0, updating: 0, updates };
        operations.begin();
        operations
    }

    fn begin(&mut self) {
        self.left = self.sections;
        let updates = |updates: &mut Updates| match updates.random.f64() < updates.share {
            true => updates.sections,
            false => 0,
        };
        self.updating = self.updates.as_mut().map_or(0, updates);
    }

    /// The current step, if it is an updating step of an operation.
    #[inline]
    fn update(&self, turn: usize) -> Option<Step> {
        let updates = self.updates.as_ref().filter(|_| self.left == 0)?;
        Some(updates.steps[turn % updates.steps.len()])
    }

    /// Counts a section; returns whether it was the last of its operation.
    #[inline]
    fn section_ends(&mut self) -> bool {
        match self.left {
            0 => self.updating -= 1,
            _ => self.left -= 1,
        }
        let over = self.left == 0 && self.updating == 0;
        if over {
            self.begin();
        }
        over
    }
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

    /// The outcome of a thread that could not run as requested.
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
            operations: Operations::new(index, settings),
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
            let step = self.operations.update(turn);
            let step = step.unwrap_or_else(|| self.steps[turn % self.steps.len()]);
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
            if self.operations.section_ends() {
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
