//! Every mechanism natively, on real sockets:
//! `cargo test --release -p manycore-syscalls --test offload`.
//!
//! The module under test is included by its path: the crate exports functions that a test harness
//! runs on.
#![cfg(target_os = "linux")]

mod affinity;
mod blocking;
mod many;
#[path = "../../src/offload/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the library uses more of it")]
mod offload;
mod processes;
mod refused;
mod rig;
mod semantics;
mod signals;
mod transfers;
