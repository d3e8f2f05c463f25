//! The library, natively: one module for each thing that it has.
#![cfg(all(target_os = "linux", not(any(loom, manycore_bare))))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests are ordinary programs: the rules for algorithms are not for them"
)]

mod adaptive_rw;
mod art;
mod atomic;
// Hundreds of thousands of states of a model, without any code of the library.
#[cfg(not(miri))]
mod asymmetry;
mod bank;
mod bytes;
mod collections;
mod condvar;
mod flat_combining;
mod futex;
mod hash_map;
mod ldu;
mod lock_api;
mod lock_api_timed;
mod mvrlu_bytes;
mod mvrlu_limits;
mod ordered;
mod plain_hash_map;
// The interpreter has no `/proc` that shows which threads sleep.
#[cfg(not(miri))]
mod phase_rw;
mod reclaim;
mod reverse_map;
mod rlu;
mod rw_stress;
mod sequences;
mod snapshots;
mod space;
mod space_histories;
mod space_threads;
mod space_values;
mod stress;
mod time;
mod versioned;
