//! The points of sets on this host, and their fields in records.

use manycore_measure::{Measurement, Parameter};

use super::grid::TaskGrid;
use super::task::Task;
use super::{contenders, peers};
use crate::failure::Failure;
use crate::structure::{NativeGrid, NativeTask, StructureSlice};

impl NativeGrid for TaskGrid {
    fn check_native(&self, against: &[String], foreign: bool) -> Result<(), Failure> {
        self.check(&contenders::native::names(&self.structure))?;
        peers::check(against, &self.structure, foreign)
    }
}

impl NativeTask for Task {
    type Slice = StructureSlice;

    fn in_words(&self, sync: &str) -> String {
        let Self { threads, keys, .. } = self;
        let filling = if keys.is_many() {
            format!(" ({} keys to begin with)", keys.initial)
        } else {
            String::new()
        };
        format!("{sync}, {threads} threads{filling}")
    }

    fn is_foreign(sync: &str) -> bool {
        peers::is_foreign(sync)
    }

    fn used(slice: &StructureSlice) -> &StructureSlice {
        slice
    }

    fn describe(&self, record: &mut Measurement, _: &[StructureSlice]) {
        describe(record, self);
    }
}

/// Writes a point's fields into its record.
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
