//! How far a campaign is.

use indicatif::{ProgressBar, ProgressStyle};

use super::Rounds;
use crate::worker::Subject;

/// A bar on standard error, if that is a terminal; nothing otherwise.
pub(super) struct Progress {
    bar: ProgressBar,
    timed: bool,
}

impl Progress {
    pub fn new(wanted: bool, rounds: Rounds, steps: usize) -> Self {
        let (length, timed) = match rounds {
            Rounds::Count(count) => (u64::from(count) * steps as u64, false),
            Rounds::Within(budget) => (budget.as_secs(), true),
        };
        // The library draws on terminals only.
        let bar = if wanted { ProgressBar::new(length) } else { ProgressBar::hidden() };
        let template = "{wide_msg} {bar:30} {elapsed}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()),
        );
        Self { bar, timed }
    }

    /// A step begins.
    pub fn step(&self, round: u32, subject: &Subject, threads: u32) {
        self.bar.set_message(format!("round {round}: {subject}, {threads} threads"));
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
