//! The journal: records of transactions, in frames that are written one after the other.

pub mod frame;
pub mod operation;
pub mod record;
pub mod region;
pub mod scan;
