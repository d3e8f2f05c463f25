//! The interplay of threads that commit, the thread that writes the journal and threads that read,
//! under the loom model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p timestone --test loom --release`.
#![cfg(loom)]

#[path = "../../../manycore/tests/loom/caught.rs"]
mod caught;
mod commits;
mod mutations;
mod rings;
