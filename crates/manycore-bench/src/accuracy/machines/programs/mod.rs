//! Programs of simulated threads that stand for published measurements, where no other workload
//! fits.
//!
//! | module | what is in it |
//! |---|---|
//! | `contend` | sections under one lock, or changes of one word |
//! | `calls` | calls of kernels, as the lines that they access |
//! | `glibc_rw` | a reader-writer lock of others |
//! | `lines` | accesses to one line: bursts of all cores, and hand-overs between two |
//! | `reclaim` | lists whose nodes are freed by a scheme |

pub(crate) mod calls;
pub(crate) mod contend;
mod glibc_rw;
pub(crate) mod lines;
pub(crate) mod reclaim;
