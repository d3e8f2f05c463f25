//! The points of sets on this host, and what records say of them.

use manycore_measure::{Measurement, Parameter};

use super::grid::TaskGrid;
use super::task::{Keys, Task};
use super::{contenders, peers, simulated};
use crate::failure::Failure;
use crate::simulated::{Finding, Run};
use crate::structure::{GridPoint, Load, NativeGrid, NativeTask, StructureSlice};

impl NativeGrid for TaskGrid {
    fn check_native(&self, against: &[String], foreign: bool) -> Result<(), Failure> {
        self.check(&contenders::native::names(&self.structure))?;
        peers::check(against, &self.structure, foreign)
    }
}

impl GridPoint for Task {
    const WORKLOAD: &'static str = "set";
    const PROGRAM: &'static str = "Set";

    fn threads(&self) -> u32 {
        self.threads
    }

    fn in_round(&self, sync: &str, round: u32) -> Self {
        let seed = self.keys.seed.wrapping_add(u64::from(round));
        let keys = Keys { seed, ..self.keys.clone() };
        Self { sync: sync.to_owned(), keys, ..self.clone() }
    }

    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String> {
        simulated::simulate(load, run)
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
