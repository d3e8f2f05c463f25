//! What simulated threads do in place of what was measured, where no other workload has it.
//!
//! | module | what is in it |
//! |---|---|
//! | `contend` | sections under one lock, or changes of one word |
//! | `lines` | accesses to one line: bursts of all cores, and hand-overs between two |

pub(crate) mod contend;
pub(crate) mod lines;
