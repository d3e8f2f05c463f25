//! Every mechanism natively, on real sockets: `cargo test --release -p manycore-steer --test native`.
#![cfg(all(target_os = "linux", not(loom)))]

mod blocking;
mod many;
mod processes;
mod refused;
mod rig;
mod semantics;
mod signals;
mod transfers;
