//! From slices to records.

use manycore_measure::{Measurement, Parameter};

use super::any_index::Contender;
use super::campaign::Samples;
use super::slice::{Slice, contender};
use super::task::Task;
use crate::campaign::values;
use crate::failure::Failure;
use crate::metrics::median;
use crate::structure;

impl Samples {
    /// A record for each mechanism at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let mut all = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for (mut record, slices) in
                structure::measured("index", self, number, |slice: &Slice| &slice.used)?
            {
                let sync = record.mechanism.name().to_owned();
                describe(&mut record, point, contender(&Task { sync, ..point.clone() }));
                add_own(&mut record, point, slices);
                all.push(record);
            }
        }
        Ok(all)
    }
}

/// What only indexes have.
fn add_own(record: &mut Measurement, point: &Task, slices: &[Slice]) {
    let mut add = |name: &str, unit, values: Vec<f64>| {
        record.metrics.insert(name.to_owned(), median(unit, &values));
    };
    if point.mix.scans() {
        add("entries", "entry/s", values(slices, Slice::entries));
    }
    if slices.iter().any(|slice| slice.missed > 0.0) {
        add("count_missed_lookups", "1/op", values(slices, |slice| slice.missed));
    }
    let lost: Option<Vec<f64>> = slices.iter().map(|slice| slice.lost).collect();
    if let Some(lost) = lost {
        add("count_lost_updates", "1/op", lost);
    }
}

/// What a record says about its point.
pub(crate) fn describe(record: &mut Measurement, point: &Task, contender: Option<&Contender>) {
    let records = &point.records;
    record.structure = Some(point.structure.clone());
    record.threads = point.threads;
    record.update = Some(point.mix.updates());
    record.seed = Some(records.seed);
    let mut parameter = |name: &str, value: Parameter| {
        record.parameters.insert(name.to_owned(), value);
    };
    parameter("mix", point.mix.to_string().as_str().into());
    parameter("initial", (records.initial as f64).into());
    parameter("zipf", records.popularity.exponent().into());
    parameter("key", records.key.name().into());
    parameter("value_bytes", f64::from(records.value.bytes()).into());
    if point.structure == "hash" {
        parameter("buckets", (records.buckets as f64).into());
    }
    if let Some(contender) = contender.filter(|_| point.mix.modifies()) {
        let steps = if contender.abilities.modifies { "one" } else { "two" };
        parameter("modify_steps", steps.into());
    }
}
