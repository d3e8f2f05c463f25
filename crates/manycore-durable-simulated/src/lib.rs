//! Sets in simulated persistent memory: for comparison with TimeStone (Krishnan, Kim, Mathew, Fu,
//! Demeri, Min & Kannan, ASPLOS 2020), and for its own costs on persistent memory.
//!
//! | module | what is in it |
//! |---|---|
//! | [`persistence`] | lines that are written back, and waiting for that |
//! | [`romulus`] | Romulus' log form: two copies of all, one writer for all threads |
//! | [`timestone`] | MV-RLU with a log of operations and a checkpoint log for each thread |
//!
//! For use there is the crate `timestone`, which writes files. This is a model of the paper's form
//! on its own kind of memory: it makes all writes, so the costs are right, but of the two sets only
//! Romulus can be recovered.
//!
//! ```
//! use manycore_durable_simulated::persistence::Simulated;
//! use manycore_durable_simulated::romulus::Romulus;
//! use manycore_traits::{ConcurrentSet, SetHandle};
//!
//! let set = Romulus::<Simulated>::new(16, 1_000, 4);
//! let mut handle = ConcurrentSet::handle(&set);
//! assert!(handle.insert(7) && !handle.insert(7) && handle.contains(&7));
//! ```

pub mod persistence;
pub mod romulus;
pub mod timestone;
