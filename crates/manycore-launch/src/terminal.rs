//! A command's output: its result on stdout, everything else on stderr, and progress only to a
//! person.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::{Failure, Result};

/// Writes a result to stdout.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        Failure::bad_input(
            format!("cannot write the result to stdout: {error}"),
            "redirect it elsewhere",
        )
    })
}

/// If the user has closed stderr, nothing is written.
fn write_note(text: &impl Display) {
    let _ = writeln!(io::stderr(), "manycore: {text}");
}

/// How much is said.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    quiet: bool,
    verbose: bool,
}

impl Terminal {
    /// As the flags `-q` and `-v` ask.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        Self { quiet, verbose }
    }

    /// Prints information that the user did not ask for, but should know.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            write_note(&text);
        }
    }

    /// Says what is done, with `-v`.
    pub fn say(&self, text: impl Display) {
        if self.verbose {
            write_note(&text);
        }
    }

    /// Whether progress is to be shown, if stderr is a terminal.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && !self.verbose
    }

    /// A bar of `steps` steps. It is drawn on a terminal only.
    pub fn progress(&self, steps: u64) -> ProgressBar {
        let shown = self.shows_progress() && io::stderr().is_terminal();
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg} {eta}")
            .expect("the template is well formed");
        let bar = ProgressBar::with_draw_target(Some(steps), target).with_style(style);
        if shown {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        bar
    }
}
