//! The points of indexes on this host, and their descriptions in records.

use manycore_measure::{Measurement, Parameter};

use super::any_index::{Contender, names};
use super::grid::TaskGrid;
use super::slice::{Slice, contender};
use super::task::Task;
use super::{own, peers};
use crate::campaign::values;
use crate::failure::Failure;
use crate::metrics::median;
use crate::structure::{NativeGrid, NativeTask, StructureSlice};

impl NativeGrid for TaskGrid {
    fn check_native(&self, against: &[String], _: bool) -> Result<(), Failure> {
        self.check(own::native::CONTENDERS)?;
        let structure = &self.structure;
        let known = names(peers::CONTENDERS, structure);
        let unknown = against.iter().find(|name| !known.contains(&name.as_str()));
        let unknown = unknown.map(|unknown| {
            let known = known.join(", ");
            format!("no {structure} of others is called `{unknown}`: choose from {known}")
        });
        match unknown.or_else(|| self.refusal(peers::CONTENDERS, against)) {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }
}

impl NativeTask for Task {
    type Slice = Slice;

    fn in_words(&self, sync: &str) -> String {
        let Self { threads, records, mix, .. } = self;
        let filling = if records.is_many() {
            format!(" ({} records to begin with)", records.initial)
        } else {
            String::new()
        };
        format!("{sync}, {mix}, {threads} threads{filling}")
    }

    fn used(slice: &Slice) -> &StructureSlice {
        &slice.used
    }

    fn describe(&self, record: &mut Measurement, slices: &[Slice]) {
        let sync = record.mechanism.name().to_owned();
        describe(record, self, contender(&Self { sync, ..self.clone() }));
        add_own(record, self, slices);
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
