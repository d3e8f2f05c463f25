//! Tests of the crate, by what happens to the files.
#![cfg(not(loom))]

mod crashes;
mod damage;
mod engine;
mod faults;
mod inspect;
mod kills;
mod store;
mod threads;
