//! Two hash tables of ASCYLIB, for the simulator. Results under these names were published for
//! many-core machines (`figures/measured/tables-optik`); a simulated machine runs the same tables.
//!
//! | module | what is in it |
//! |---|---|
//! | `nodes` | nodes of half a cache line, and the memory of each thread that they come from |
//! | `lazy` | `ascylib-lazy`: a lock for each bucket, sixteen to a line; reads take none |
//! | `java` | `ascylib-java`: 512 segments, each with a lock, a count and a table that grows |
//!
//! They are written anew, after the published sources, with the same data on each cache line. In
//! both, an update that changes nothing takes no lock.

mod java;
mod lazy;
mod nodes;
#[cfg(test)]
mod tests;

use super::contenders::AnySet;
use super::task::Task;

use self::java::SegmentedTable;
use self::lazy::LazyTable;

/// Makes an empty table for the task; `None` if neither table fits the task.
pub(crate) fn make(task: &Task) -> Option<Box<dyn AnySet>> {
    let buckets = task.keys.buckets;
    match (task.structure.as_str(), task.sync.as_str()) {
        ("hash", LazyTable::NAME) => Some(Box::new(LazyTable::new(task.threads, buckets))),
        ("hash", SegmentedTable::NAME) => {
            Some(Box::new(SegmentedTable::new(task.threads, buckets)))
        }
        _ => None,
    }
}

/// The names of a structure's mechanisms in this module.
pub(crate) fn names(structure: &str) -> Vec<String> {
    let names = [LazyTable::NAME, SegmentedTable::NAME];
    names.into_iter().filter(|_| structure == "hash").map(str::to_owned).collect()
}
