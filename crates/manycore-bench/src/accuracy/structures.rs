//! `manycore sim accuracy --of structures`: sets and reverse maps on this host and on a simulated
//! machine, whose model is measured on this host.
//!
//! In addition to the model, four numbers are fitted: see `calibration`. The validation uses other
//! workloads, and mostly other mechanisms.

use manycore_measure::{Claim, Measurement, significant};

use super::calibration::{self, Calibration};
use super::cases::Kind;
pub use super::cases::Options;
use super::comparison::Comparison;
use super::{judge, render as shown};
use crate::failure::Failure;
use crate::simulated::Beside;

/// The results of the study.
#[derive(Clone, Debug)]
pub struct StructureAccuracy {
    /// Native and simulated records.
    pub measurements: Vec<Measurement>,
    /// What the study claims about the simulator.
    pub claims: Vec<Claim>,
    comparisons: Vec<Comparison>,
    calibration: Calibration,
}

/// Runs the study.
pub fn run(options: &Options) -> Result<StructureAccuracy, Failure> {
    let calibration = calibration::measure(options)?;
    let mut found = StructureAccuracy {
        measurements: Vec::new(),
        claims: Vec::new(),
        comparisons: Vec::new(),
        calibration,
    };
    for case in options.cases() {
        let beside = match case.kind {
            Kind::Set(_) => calibration.sets,
            Kind::ReverseMap(_) => calibration.trees,
        };
        let (native, simulated) = (options.native(&case)?, options.simulated(&case, beside)?);
        for own in &native {
            let is_same = |other: &&Measurement| {
                (&other.mechanism, other.threads) == (&own.mechanism, own.threads)
            };
            found.comparisons.extend(simulated.iter().find(is_same).map(|other| Comparison {
                workload: case.name.clone(),
                threads: own.threads,
                mechanism: own.mechanism.name().to_owned(),
                native: own.value,
                simulated: other.value,
            }));
        }
        found.measurements.extend(native.into_iter().chain(simulated));
    }
    found.claims = judge::throughput("accuracy-structures", &found.comparisons);
    Ok(found)
}

/// Errors by threads, by mechanism and by workload, the fitted numbers, and the claims.
pub fn render(found: &StructureAccuracy) -> String {
    let beside = |what: &str, beside: Beside| {
        let [read, update] = [beside.read_ns, beside.update_ns].map(|ns| significant(ns, 2));
        format!("  {what}: {read} ns if it reads, {update} ns if it updates")
    };
    format!(
        "{}\n\nWhat an operation takes apart from its accesses, fitted with other workloads:\n{}\n{}\n\n{}\n",
        shown::tables(&found.comparisons, "mechanism", "workload"),
        beside("sets", found.calibration.sets),
        beside("reverse maps", found.calibration.trees),
        Claim::table(&found.claims),
    )
}
