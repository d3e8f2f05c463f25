//! A point of a grid: the operations of threads on a structure, the same natively and simulated.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::simulated::{Beside, Finding, Run, SimulatedProgram};

/// The operations of threads at a point of a grid, by a mechanism.
pub(crate) trait GridPoint:
    Clone + Debug + PartialEq + Serialize + DeserializeOwned
{
    /// What records call the workload, and workers its slices.
    const WORKLOAD: &'static str;

    /// What jobs of simulators call it.
    const PROGRAM: &'static str;

    /// How many threads there are.
    fn threads(&self) -> u32;

    /// The point with a mechanism, in a round, which has a seed of its own.
    fn in_round(&self, sync: &str, round: u32) -> Self;

    /// Simulates the point in this process. The error tells in a line why there is no result.
    fn simulate(load: &Load<Self>, run: &Run) -> Result<Finding, String>;
}

/// What simulated threads do, and until when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Load<T> {
    /// The structure and its operations.
    pub task: T,
    /// What an operation takes apart from its accesses.
    pub beside: Beside,
    /// The number of operations of each thread; `None` if a time bounds them.
    pub operations: Option<u64>,
}

impl<T: GridPoint> Load<T> {
    /// How a structure is used that has this number of keys at the start.
    pub fn of_keys(&self, keys: u64) -> Simulated {
        Simulated { threads: self.task.threads(), operations: self.operations, keys }
    }
}

impl<T: GridPoint> SimulatedProgram for Load<T> {
    const NAME: &'static str = T::PROGRAM;

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        T::simulate(self, run)
    }
}
