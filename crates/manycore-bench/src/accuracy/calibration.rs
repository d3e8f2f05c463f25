//! The time of an operation on a structure apart from its accesses, calibrated with four kernels.
//! None of these kernels is used for validation.
//!
//! The simulator charges for accesses to shared memory. It does not charge for drawing an
//! operation, for the loop, for calls, hashing, comparing and allocating. In each kernel one thread
//! only reads, or only updates, a small table or a small tree with a lock. The calibration runs it
//! natively, and on the simulated host with nothing charged apart from accesses. The difference is
//! what the simulator charges from then on.

use manycore_measure::Measurement;

use super::cases::{Case, Kind, Options};
use crate::failure::Failure;
use crate::rmap::{self, Load};
use crate::set::{Keys, TaskGrid};
use crate::simulated::Beside;

/// The lock of the kernels. It is validated as well, with other workloads.
const LOCK: &str = "lock:adaptive";

/// The kernels' shares of updates.
const SHARES: [f64; 2] = [0.0, 100.0];

/// The calibrated times.
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

/// The difference between the native time of an operation and the simulated time of its accesses
/// alone.
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
