//! The points of databases on this host, and their descriptions in records.

use manycore_measure::{Measurement, Parameter};

use super::grid::TaskGrid;
use super::slice::Slice;
use super::task::{Mix, Size, Task};
use super::{database, own, peers};
use crate::campaign::values;
use crate::failure::Failure;
use crate::metrics::median;
use crate::structure::{NativeGrid, NativeTask, StructureSlice};

impl NativeGrid for TaskGrid {
    fn check_native(&self, against: &[String], _: bool) -> Result<(), Failure> {
        self.check(&database::names(own::native::CONTENDERS))?;
        let known = database::names(peers::CONTENDERS);
        match against.iter().find(|name| !known.contains(name)) {
            Some(unknown) => {
                let known = known.join(", ");
                Err(Failure::Usage(format!(
                    "no database of others is called `{unknown}`: choose from {known}"
                )))
            }
            None => Ok(()),
        }
    }
}

impl NativeTask for Task {
    type Slice = Slice;

    fn in_words(&self, sync: &str) -> String {
        let Self { threads, mix, .. } = self;
        format!("{sync}, {mix}, {threads} threads ({} rows to begin with)", self.rows())
    }

    fn used(slice: &Slice) -> &StructureSlice {
        &slice.used
    }

    fn describe(&self, record: &mut Measurement, slices: &[Slice]) {
        describe(record, self);
        if self.mix == Mix::Tpcc {
            let audits = median("1/op", &values(slices, |slice| slice.audits));
            record.metrics.insert(AUDITS.to_owned(), audits);
        }
    }
}

/// How often conditions were looked at, for each transaction.
pub(super) const AUDITS: &str = "count_audits";

/// What a record says about its point.
pub(super) fn describe(record: &mut Measurement, point: &Task) {
    record.threads = point.threads;
    record.seed = Some(point.seed);
    let mut parameter = |name: &str, value: Parameter| {
        record.parameters.insert(name.to_owned(), value);
    };
    parameter("mix", point.mix.to_string().as_str().into());
    match point.mix {
        Mix::Ycsb16 => {
            record.update = Some(point.update);
            parameter("initial", (point.size.records as f64).into());
            parameter("zipf", point.popularity.exponent().into());
        }
        Mix::Tpcc => {
            let Size { warehouses, items, customers, .. } = point.size;
            parameter("warehouses", (warehouses as f64).into());
            parameter("items", (items as f64).into());
            parameter("customers", (customers as f64).into());
        }
    }
}
