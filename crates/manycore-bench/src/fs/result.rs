//! The points of file systems on this host, and their descriptions in records.

use manycore_measure::Measurement;

use super::grid::TaskGrid;
use super::slice::Slice;
use super::task::Task;
use crate::campaign::values;
use crate::failure::Failure;
use crate::metrics::median;
use crate::structure::{NativeGrid, NativeTask, StructureSlice};

impl NativeGrid for TaskGrid {
    fn check_native(&self, against: &[String], _: bool) -> Result<(), Failure> {
        match against.first() {
            Some(name) => Err(Failure::Usage(format!("no file system of others: `{name}`"))),
            None => self.check(),
        }
    }
}

impl NativeTask for Task {
    type Slice = Slice;

    fn in_words(&self, sync: &str) -> String {
        format!("{sync}, {}, {} threads", self.workload, self.threads)
    }

    fn used(slice: &Slice) -> &StructureSlice {
        &slice.used
    }

    fn describe(&self, record: &mut Measurement, slices: &[Slice]) {
        describe(record, self);
        let retries = median("1/op", &values(slices, |slice| slice.retries));
        record.metrics.insert(RETRIES.to_owned(), retries);
    }
}

/// How often calls had to restart, for each operation.
pub(super) const RETRIES: &str = "count_retries";

/// What a record says about its point.
pub(super) fn describe(record: &mut Measurement, point: &Task) {
    record.threads = point.threads;
    record.seed = Some(point.seed);
    record.parameters.insert("mix".to_owned(), point.workload.as_str().into());
    record.parameters.insert("chains".to_owned(), (point.chains as f64).into());
}
