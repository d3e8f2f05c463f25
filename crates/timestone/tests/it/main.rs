//! Tests of the crate, by what happens to the files.

mod crashes;
mod damage;
mod engine;
mod faults;
mod store;
mod threads;
