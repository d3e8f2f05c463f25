//! `manycore bench goals`: how fast the library's sets, indexes and reverse maps are to be, and
//! whether they are.
//!
//! The measurement consists of a few parts ([`NAMES`]), each a campaign of [`set`],
//! [`index`](crate::index) or [`rmap`], natively or simulated. A list of claims is judged from
//! each. If a claim names a mechanism that failed or is not in this build, the claim stays
//! undecided.

mod claims;
mod command;
mod index;
mod parts;
mod simulated;

use std::time::Duration;

use manycore_measure::{Claim, Measurement};

use crate::failure::Failure;
use crate::front::Front;
use crate::scorecard::Scorecard;
use crate::simulated::SimulatorPool;
use crate::worker::Command;
use crate::workload::Workload;
use crate::{rmap, set, structure};
pub use parts::NAMES;

/// What is wanted of sets, indexes and reverse maps.
pub(crate) struct Goals;

impl Workload for Goals {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// The parts, of [`NAMES`].
    pub parts: Vec<String>,
    /// The time for all native measurements. Simulations are not limited.
    pub budget: Duration,
    /// What everything is drawn by.
    pub seed: u64,
    /// How to start a worker.
    pub worker: Command,
    /// The command that starts the program with the sets of C libraries; `None` if that program was
    /// not built.
    pub foreign: Option<Command>,
    /// The processes that simulate.
    pub pool: SimulatorPool,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

/// Measures the parts and judges the claims.
pub fn run(options: &Options) -> Result<Scorecard, Failure> {
    let unknown = options.parts.iter().find(|part| !NAMES.contains(&part.as_str()));
    if let Some(unknown) = unknown {
        let names = NAMES.join(", ");
        return Err(Failure::Usage(format!("there is no part `{unknown}`: choose from {names}")));
    }
    let mut found = Scorecard::default();
    let shares: f64 = options.parts.iter().map(|part| parts::share(part)).sum();
    for part in &options.parts {
        let time = options.budget.mul_f64(parts::share(part) / shares.max(f64::MIN_POSITIVE));
        let of_part = match part.as_str() {
            "rmap" => reverse_map(options, time)?,
            "simulated" => simulated::run(options)?,
            index::SIMULATED => index::simulate(options)?,
            name if index::NATIVE.contains(&name) => index::measure(options, name, time)?,
            name => sets(options, name, time)?,
        };
        found.measurements.extend(of_part.measurements);
        found.claims.extend(of_part.claims);
        found.failures.extend(of_part.failures);
    }
    Ok(found)
}

fn sets(options: &Options, name: &str, time: Duration) -> Result<Scorecard, Failure> {
    let part = parts::of_sets(name, options.foreign.is_some());
    let settings = set::Options {
        workload: set::TaskGrid {
            keys: set::Keys { seed: options.seed, ..set::Keys::of(1) },
            ..set::TaskGrid::default()
        },
        rounds: set::Rounds::Within(time),
        foreign: options.foreign.clone(),
        progress: options.progress,
        ..set::Options::new(options.worker.clone())
    };
    let mut points = part.points;
    points.iter_mut().for_each(|point| point.keys.seed = options.seed);
    let samples = structure::contest(&settings, points, part.mechanisms)?;
    Ok(Scorecard {
        measurements: samples.measurements()?,
        claims: claims::judge(name, &samples)?,
        failures: samples.failures(),
    })
}

fn reverse_map(options: &Options, time: Duration) -> Result<Scorecard, Failure> {
    let settings = parts::reverse_map(options, time);
    let ran = rmap::run(&settings, &options.worker)?;
    let claims = claims::of_reverse_maps(&ran.measurements);
    Ok(Scorecard { measurements: ran.measurements, claims, failures: ran.failures })
}

/// The results: tables of all measurements, and the claims.
pub fn render(found: &Scorecard) -> String {
    let of = |workload: &str| -> Vec<Measurement> {
        found.measurements.iter().filter(|record| record.workload == workload).cloned().collect()
    };
    let tables = [
        set::render(&of("set")),
        crate::index::render(&of("index")),
        rmap::render(&of("rmap")),
        Claim::table(&found.claims).to_string(),
    ];
    let tables = tables.iter().filter(|table| !table.is_empty());
    tables.map(|table| format!("{table}\n")).collect()
}
