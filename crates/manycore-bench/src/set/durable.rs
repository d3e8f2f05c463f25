//! Sets in simulated persistent memory. Their mechanisms exist on simulated machines only.

use manycore_durable_simulated::persistence::Simulated;
use manycore_durable_simulated::romulus::Romulus;
use manycore_durable_simulated::timestone::Logged;
use manycore_sim::Machine;
use manycore_simulated::collections::hash::VersionedTable;
use manycore_simulated::collections::list::VersionedList;

use super::contenders::AnySet;
use super::task::Task;

/// MV-RLU with TimeStone's logs, and the log form of Romulus.
const TIMESTONE: &str = "timestone";
const ROMULUS: &str = "romulus-log";

/// The names of a structure's durable mechanisms.
pub(super) fn names(structure: &str) -> impl Iterator<Item = String> {
    let has_some = ["list", "hash"].contains(&structure);
    [TIMESTONE, ROMULUS].into_iter().filter(move |_| has_some).map(str::to_owned)
}

/// Why a mechanism cannot run on a machine; `None` if it can.
pub(super) fn fault(sync: &str, machine: &Machine) -> Option<String> {
    let is_durable = [TIMESTONE, ROMULUS].contains(&sync);
    (is_durable && !machine.persist.is_there()).then(|| {
        format!(
            "{sync} needs persistent memory, and {} has none: simulate xeon-8280m-2x28x2, or give \
             the machine's file a section [persist]",
            machine.name
        )
    })
}

/// Makes an empty set for the task; `None` if the task has no durable mechanism.
pub(super) fn make(task: &Task) -> Option<Box<dyn AnySet>> {
    let buckets = task.keys.buckets as usize;
    match (task.structure.as_str(), task.sync.as_str()) {
        ("list", TIMESTONE) => Some(Box::<VersionedList<u64, (), Logged<Simulated>>>::default()),
        ("hash", TIMESTONE) => {
            Some(Box::new(VersionedTable::<u64, (), Logged<Simulated>>::new(buckets)))
        }
        ("list", ROMULUS) => Some(romulus(task, 1)),
        ("hash", ROMULUS) => Some(romulus(task, buckets)),
        _ => None,
    }
}

fn romulus(task: &Task, buckets: usize) -> Box<dyn AnySet> {
    // The thread that fills the set has a handle as well, and so has the one that verifies it.
    let handles = task.threads as usize + 1;
    Box::new(Romulus::<Simulated>::new(buckets, task.keys.range as usize, handles))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::task::Keys;
    use super::*;
    use crate::simulated::{self, Beside, Job, Program};
    use crate::slice::Pinning;
    use crate::structure::Load;

    fn finding(machine: &str, structure: &str, sync: &str) -> Result<simulated::Finding, String> {
        let task = Task {
            structure: structure.to_owned(),
            sync: sync.to_owned(),
            threads: 4,
            update: 50.0,
            keys: Keys::of(100),
        };
        let load = Load { task, beside: Beside::each(5.0), operations: None };
        simulated::simulate::<Load<Task>>(&Job {
            machine: manycore_sim::model::find(machine).unwrap().to_toml(),
            cpus: None,
            mechanism: sync.to_owned(),
            threads: 4,
            program: Program::of(&load),
            measured: Duration::from_micros(100),
            pinning: Pinning::Auto,
            seed: 1,
            every_turn: false,
            patient: true,
        })
    }

    #[test]
    fn written_bytes_are_counted() {
        for structure in ["list", "hash"] {
            for sync in names(structure) {
                let found = finding("xeon-8280m-2x28x2", structure, &sync).unwrap();
                let bytes = found.sight["count_device_bytes"];
                // A quarter of the operations changes something, because half of them may.
                assert!((10.0..500.0).contains(&bytes), "{structure} {sync}: {bytes}");
            }
        }
        assert_eq!(names("bst").count(), 0);
    }

    #[test]
    fn a_machine_without_persistent_memory_is_named() {
        let fault = finding("xeon-8180-8x28x2", "hash", "romulus-log").unwrap_err();
        assert!(fault.contains("xeon-8180-8x28x2-like has none"), "{fault}");
    }
}
