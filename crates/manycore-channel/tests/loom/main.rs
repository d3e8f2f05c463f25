//! The parts in which threads meet, under the loom model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p manycore-channel --test loom --release`.
//!
//! `mutations.rs` lists each ordering that is weakened by name (`order!`), and each step that is
//! left out (`mutation!`), with the model that has to fail then.
#![cfg(loom)]

mod calls;
#[path = "../../../manycore/tests/loom/caught.rs"]
mod caught;
mod descriptors;
mod mutations;
