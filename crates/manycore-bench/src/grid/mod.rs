//! `manycore bench grid`: the project's promises about its locks, over thread counts and section
//! lengths.
//!
//! The grid is a [campaign](crate::lock) over all locks, as a library and through the preload
//! library. A list of [claims](manycore_measure::Claim) is judged from it. If a claim names a lock
//! that is not in this build, the claim stays undecided.

mod claims;
mod command;
mod render;
mod view;

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Failure;
use crate::front::Front;
use crate::lock::{Options, Rounds};
use crate::scorecard::Scorecard;
use crate::work::Length;
use crate::worker::{Command, Through};
use crate::workload::Workload;
pub use render::render;

/// What is promised of locks.
pub(crate) struct Grid;

impl Workload for Grid {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }
}

/// How much time to spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// About two minutes for a dozen locks: some of the points, few rounds. Many claims remain
    /// undecided.
    Quick,
    /// All points, with as many rounds as there is time for.
    Within(Duration),
}

/// The grid as options of [`lock`](crate::lock). Change them as you like, and pass them to [`run`].
pub fn options(worker: Command, preload: Option<PathBuf>, effort: Effort) -> Options {
    let sections = vec![Length::fixed(50.0), Length::fixed(1_000.0), Length::fixed(20_000.0)];
    let options = Options { sections, preload, ..Options::new(worker) };
    match effort {
        Effort::Quick => Options {
            threads: vec![1, 2, 8, 32],
            slice: Duration::from_millis(15),
            rounds: Rounds::Count(6),
            ..options
        },
        Effort::Within(budget) => Options {
            threads: vec![1, 2, 4, 8, 16, 32, 64],
            slice: Duration::from_millis(30),
            rounds: Rounds::Within(budget),
            ..options
        },
    }
}

/// Measures the grid and judges the claims.
pub fn run(options: &Options) -> Result<Scorecard, Failure> {
    let samples = options.campaign()?.run()?;
    let native = options.native.then_some(Through::Native);
    let ways = native.into_iter().chain(options.preload.clone().map(Through::Preload));
    let mut claims = Vec::new();
    for way in ways {
        claims.extend(claims::judge(&view::View::new(&samples, way))?);
    }
    Ok(Scorecard { measurements: samples.measurements()?, claims, failures: samples.failures() })
}
