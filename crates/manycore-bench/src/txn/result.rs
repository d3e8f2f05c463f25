//! From slices to records.

use manycore_measure::{Measurement, Parameter};

use super::campaign::Samples;
use super::slice::Slice;
use super::task::{Mix, Size, Task};
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
                structure::measured("txn", self, number, |slice: &Slice| &slice.used)?
            {
                describe(&mut record, point);
                if point.mix == Mix::Tpcc {
                    let audits = median("1/op", &values(slices, |slice| slice.audits));
                    record.metrics.insert(AUDITS.to_owned(), audits);
                }
                all.push(record);
            }
        }
        Ok(all)
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
