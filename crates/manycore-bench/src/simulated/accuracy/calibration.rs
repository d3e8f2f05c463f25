//! What an operation takes beside its accesses: found with four kernels, none of which is validated with.
//!
//! The simulator charges for accesses to what is shared. Drawing an operation, the loop, calls, hashing, comparing and allocating are
//! not among those. So one thread does next to nothing but that; what it takes natively longer than on the simulated host, with nothing
//! charged beside accesses, is what is charged from then on:
//!
//! | kernel | for |
//! |---|---|
//! | look-ups in a table of 1,000 keys | sets, operations that read |
//! | updates of it | sets, operations that update |
//! | one interval comes and goes in a tree without any | trees of intervals, all operations but |
//! | one interval after the other does | those that make a new one |

use manycore_report::Measurement;

use super::structures::{Case, Kind, Options};
use crate::failure::Failure;
use crate::rmap::{self, Load};
use crate::set::{Keys, Workload};
use crate::simulated::job::Beside;

/// The lock of the kernels. It is validated with, too: under other workloads.
const LOCK: &str = "lock:adaptive";

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calibration {
    pub sets: Beside,
    /// Of trees whose intervals are inserted again and again.
    pub reused: Beside,
    /// Of trees into which new ones come.
    pub fresh: Beside,
}

/// Runs the kernels.
pub(super) fn measure(options: &Options) -> Result<Calibration, Failure> {
    let [read_ns, update_ns] = [0.0, 100.0].map(|share| options.beside_ns(table(share)));
    let [reused, fresh] = [true, false].map(|reuse| options.beside_ns(tree(reuse)));
    let (reused, fresh) = (reused?, fresh?);
    Ok(Calibration {
        sets: Beside { read_ns: read_ns?, update_ns: update_ns? },
        reused: Beside::each(reused),
        fresh: Beside { read_ns: reused, update_ns: fresh },
    })
}

fn table(update: f64) -> Kind {
    Kind::Set(Workload {
        syncs: vec![LOCK.to_owned()],
        threads: vec![1],
        updates: vec![update],
        keys: Keys::of(1_000),
        ..Workload::default()
    })
}

fn tree(reuse: bool) -> Kind {
    Kind::ReverseMap(rmap::Options {
        syncs: Vec::new(),
        threads: vec![1],
        load: Load { initial: 0, held: 1, reuse, ..Load::default() },
        ..rmap::Options::default()
    })
}

impl Options {
    /// By how much an operation takes longer natively than simulated without anything beside its accesses.
    fn beside_ns(&self, kind: Kind) -> Result<f64, Failure> {
        let case = Case { name: "calibration".into(), kind };
        let (native, simulated) = (self.native(&case)?, self.simulated(&case, Beside::each(0.0))?);
        let time = |records: &[Measurement]| match records {
            [record, ..] => Ok(1e9 / record.value),
            [] => Err(Failure::Failed("a kernel of the calibration has not run".to_owned())),
        };
        Ok((time(&native)? - time(&simulated)?).max(0.0))
    }
}
