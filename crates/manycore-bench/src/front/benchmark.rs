//! A benchmark as a command: its flags, its measurements, and the output of the results.

use std::fmt::Debug;

use clap::{ArgMatches, Args, Command};
use manycore_launch::failure::Result;
use manycore_launch::terminal::Terminal;
use manycore_measure::{Figure, Results};

use super::output::{failed_claims, failed_locks, print_results};
use super::plot::PlotOptions;

/// A benchmark's results: its rows, and their presentation.
#[derive(Debug)]
pub struct Outcome {
    /// The rows, and claims that are judged by them.
    pub results: Results,
    /// The rows for a person.
    pub text: String,
    /// The same as a picture.
    pub figure: Option<Figure>,
    /// What could not be measured, a line for each.
    pub failures: Vec<String>,
}

/// The flags of a benchmark, and how it runs.
pub trait Benchmark: Args + Debug + 'static {
    /// Its name, after `manycore bench` or `manycore sim`.
    const NAME: &'static str;

    /// Measures, or simulates.
    fn measure(&self, terminal: &Terminal) -> Result<Outcome>;

    /// Whether to print the rows as JSON.
    fn json(&self) -> bool;

    /// The file for the picture; `None` without a picture.
    fn plot(&self) -> Option<&PlotOptions> {
        None
    }
}

/// What a command does.
pub trait Run: Debug {
    /// Does it.
    fn run(&self, terminal: &Terminal) -> Result<()>;
}

impl<B: Benchmark> Run for B {
    fn run(&self, terminal: &Terminal) -> Result<()> {
        let canvas = self.plot().map(PlotOptions::open).transpose()?.flatten();
        let Outcome { results, text, figure, failures } = self.measure(terminal)?;
        if let (Some(canvas), Some(figure)) = (canvas, figure) {
            canvas.draw(&figure, &text)?;
        }
        print_results(&results, self.json(), &text)?;
        failed_locks(&failures)?;
        failed_claims(&results.claims)
    }
}

/// The command of a workload, before its flags are parsed.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    /// Its name.
    pub name: &'static str,
    pub(crate) augment: fn(Command) -> Command,
    pub(crate) parse: fn(&ArgMatches) -> std::result::Result<Box<dyn Run>, clap::Error>,
}

impl Front {
    /// The entry of a benchmark.
    pub fn of<B: Benchmark>() -> Self {
        Self::named::<B>(B::NAME)
    }

    /// An entry that need not be a benchmark.
    pub fn named<R: Args + Run + 'static>(name: &'static str) -> Self {
        Self {
            name,
            augment: R::augment_args,
            parse: |matches| Ok(Box::new(R::from_arg_matches(matches)?)),
        }
    }
}
