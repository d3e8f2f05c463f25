//! How far a run is.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use manycore_measure::paired::Rounds;

/// A bar on standard error, if that is a terminal; nothing otherwise.
pub(crate) struct Progress {
    bar: ProgressBar,
    timed: bool,
}

impl Progress {
    /// The progress of a run with this many steps.
    pub fn steps(wanted: bool, steps: usize) -> Self {
        Self::new(wanted, steps as u64, false)
    }

    /// The progress of a run that takes this long.
    pub fn time(wanted: bool, budget: Duration) -> Self {
        Self::new(wanted, budget.as_secs(), true)
    }

    /// The progress of a run with this many steps a round.
    pub fn rounds(wanted: bool, steps: usize, rounds: Rounds) -> Self {
        match rounds {
            Rounds::Count(count) => Self::steps(wanted, steps * count as usize),
            Rounds::Within(budget) => Self::time(wanted, budget),
        }
    }

    fn new(wanted: bool, length: u64, timed: bool) -> Self {
        // The library draws on terminals only.
        let bar = if wanted { ProgressBar::new(length) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{wide_msg} {bar:30} {elapsed}");
        bar.set_style(style.unwrap_or(ProgressStyle::default_bar()));
        if wanted {
            // Some steps take long.
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Self { bar, timed }
    }

    /// A step begins.
    pub fn step(&self, what: String) {
        self.bar.set_message(what);
        if self.timed {
            self.bar.set_position(self.bar.elapsed().as_secs());
        } else {
            self.bar.inc(1);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
