//! The simulator and its machine models, from outside.

mod fuzz;
mod models;
mod simulator;
