//! What is done for one policy at one point.

use std::ffi::OsString;

use manycore_compare::trial::{Outcome, Plan};
use manycore_launch::failure::Result;

/// What is done for one policy at one point.
pub struct Work {
    /// The program with the policy: a server with its load, or a program that needs no load.
    pub plan: Plan,
    /// A load before the first one that counts.
    pub warm_up: Option<OsString>,
    /// What came out of a run.
    pub value: fn(&Outcome) -> Result<f64>,
}
