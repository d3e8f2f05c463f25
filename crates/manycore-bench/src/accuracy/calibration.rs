//! What an operation on a structure takes beside its accesses: found with four kernels, none of
//! which is validated with.
//!
//! The simulator charges for accesses to what is shared. Drawing an operation, the loop, calls,
//! hashing, comparing and allocating are not among those. One thread does nothing but read, and
//! nothing but update, in a small table and in a small tree under a lock; what it takes natively
//! longer than on the simulated host, with nothing charged for the rest, is what is charged from
//! then on.

use manycore_measure::Measurement;

use super::cases::{Case, Kind, Options};
use crate::failure::Failure;
use crate::rmap::{self, Load};
use crate::set::{Keys, TaskGrid};
use crate::simulated::Beside;

/// The lock of the kernels. It is validated with, too: under other workloads.
const LOCK: &str = "lock:adaptive";

/// The shares of updates of the kernels.
const SHARES: [f64; 2] = [0.0, 100.0];

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibration {
    pub sets: Beside,
    pub trees: Beside,
}

/// Runs the kernels.
pub(crate) fn measure(options: &Options) -> Result<Calibration, Failure> {
    let sets = TaskGrid {
        syncs: vec![LOCK.to_owned()],
        threads: vec![1],
        updates: SHARES.to_vec(),
        keys: Keys::of(1_000),
        ..TaskGrid::default()
    };
    let trees = rmap::Options {
        syncs: Vec::new(),
        threads: vec![1],
        updates: SHARES.to_vec(),
        load: Load { initial: 100, ..Load::default() },
        ..rmap::Options::default()
    };
    let of = |kind| beside(options, &Case { name: "calibration".into(), kind });
    Ok(Calibration { sets: of(Kind::Set(sets))?, trees: of(Kind::ReverseMap(trees))? })
}

/// The difference of the times that an operation takes, natively and simulated without anything
/// beside its accesses.
fn beside(options: &Options, case: &Case) -> Result<Beside, Failure> {
    let native = options.native(case)?;
    let simulated = options.simulated(case, Beside::each(0.0))?;
    let time = |records: &[Measurement], share: f64| {
        let record = records.iter().find(|record| record.update == Some(share));
        record
            .map(|record| 1e9 / record.value)
            .ok_or_else(|| Failure::Failed("a kernel of the calibration has not run".to_owned()))
    };
    let difference = |share| -> Result<f64, Failure> {
        Ok((time(&native, share)? - time(&simulated, share)?).max(0.0))
    };
    Ok(Beside { read_ns: difference(SHARES[0])?, update_ns: difference(SHARES[1])? })
}
