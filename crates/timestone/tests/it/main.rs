//! Tests of the crate, by what happens to the files.
#![cfg(not(loom))]

mod compaction;
mod copies;
mod crashes;
mod damage;
mod engine;
mod faults;
mod gated;
mod gates;
mod images;
mod inspect;
mod isolation;
mod kills;
mod lists;
mod made;
mod operations;
mod own;
mod promises;
mod store;
mod structures;
mod threads;
