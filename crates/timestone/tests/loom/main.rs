//! The ring between a thread that commits and the thread that writes the journal, under the loom
//! model checker: `RUSTFLAGS="--cfg loom" cargo test -p timestone --test loom --release`.
#![cfg(loom)]

#[path = "../../../manycore/tests/loom/caught.rs"]
mod caught;
mod mutations;
mod rings;
