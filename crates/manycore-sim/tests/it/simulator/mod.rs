//! The behaviour of a simulated machine, as a program sees it.

mod at_home;
mod facade;
mod failures;
mod memory;
mod scheduling;
mod timing;

use manycore_sim::{Machine, Report, Simulation};

/// Runs a program on the example machine.
fn run<R: Clone>(program: impl FnOnce() -> R) -> Report<R> {
    Simulation::new(&Machine::example()).run(program).unwrap()
}
