//! From slices to records.

use manycore_measure::{Measurement, Parameter};

use super::campaign::Samples;
use super::task::Task;
use crate::failure::Failure;
use crate::structure;

impl Samples {
    /// A record for each mechanism at each point.
    pub fn measurements(&self) -> Result<Vec<Measurement>, Failure> {
        let mut all = Vec::new();
        for (number, point) in self.points.iter().enumerate() {
            for (mut record, _) in structure::measured("set", self, number, |slice| slice)? {
                describe(&mut record, point);
                all.push(record);
            }
        }
        Ok(all)
    }
}

/// What a record says about its point.
pub(crate) fn describe(record: &mut Measurement, point: &Task) {
    record.structure = Some(point.structure.clone());
    record.threads = point.threads;
    record.update = Some(point.update);
    record.seed = Some(point.keys.seed);
    let mut parameter = |name: &str, value: f64| {
        record.parameters.insert(name.to_owned(), Parameter::from(value));
    };
    parameter("initial", point.keys.initial as f64);
    parameter("range", point.keys.range as f64);
    parameter("zipf", point.keys.popularity.exponent());
    if point.structure == "hash" {
        parameter("buckets", point.keys.buckets as f64);
    }
}
