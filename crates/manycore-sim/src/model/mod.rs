//! Machine models: a [`Machine`] whose every number has its source and its uncertainty.
//!
//! A model is a TOML file. Each constant has a value, the range that probably contains the true
//! value, and a [`Provenance`]. The built-in models are in `machines/`; [`find`] knows them by
//! name, and reads any other from its path.
//!
//! | module | what is in it |
//! |---|---|
//! | `field` | the constants that there are, and where each is in a [`Machine`] |
//! | `constant` | a value with its range and provenance |
//! | `parse`, `write` | the file format |
//! | `library` | the models that come with the crate |
//! | `derive` | models that are made from measurements |
//!
//! ```
//! use manycore_sim::model::{self, Provenance};
//!
//! let model = model::find("xeon-e7-8870-8x15")?;
//! assert_eq!(model.machine().topology.cpus(), 120);
//! let transfer = model.constant("latency.load.modified", 1).unwrap();
//! assert!(transfer.low < transfer.value && transfer.value < transfer.high);
//! assert_eq!(transfer.provenance, Provenance::Cited);
//! # Ok::<(), model::Problem>(())
//! ```

mod constant;
pub mod derive;
mod field;
mod library;
mod parse;
mod problem;
mod write;

use std::collections::BTreeMap;

use crate::machine::{
    Bandwidth, Caches, Capacity, Combining, Core, Directory, Latencies, Machine, Misses, Os,
    Persist, Topology,
};

pub use constant::{Constant, Origin, Provenance};
pub use field::{CHOICES, FIELDS, Field, Unit};
pub use library::{EMBEDDED, find, names};
pub use problem::Problem;

/// A machine with the origin of its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The machine's name in reports.
    pub name: String,
    /// A description of the machine, in one line.
    pub summary: String,
    /// Publications and pages by the key that constants name in `from`.
    pub sources: BTreeMap<String, String>,
    /// The class of distance for each pair of sockets.
    pub distance: Vec<Vec<u8>>,
    /// The origin of the distances.
    pub distance_origin: Origin,
    /// In the order of [`FIELDS`]; fields with an entry for each distance class in the order of the
    /// classes. For an optional part of a machine, all of its fields or none.
    pub constants: Vec<Constant>,
}

impl Model {
    /// Reads a model. Errors refer to its file as `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        parse::parse(file, text)
    }

    /// The constant at this path, for a class of distance if it has a value for each (otherwise 0).
    pub fn constant(&self, path: &str, class: usize) -> Option<&Constant> {
        let same = |constant: &&Constant| {
            constant.field.path == path && constant.class.unwrap_or(0) == class
        };
        self.constants.iter().find(same)
    }

    /// The machine with each constant at its value.
    pub fn machine(&self) -> Machine {
        self.machine_with(|constant| constant.value)
    }

    /// The machine with each constant at the value that `choose` returns.
    pub fn machine_with(&self, choose: impl Fn(&Constant) -> f64) -> Machine {
        let mut machine = blank(&self.name, &self.distance);
        for constant in &self.constants {
            constant.field.set(&mut machine, constant.class.unwrap_or(0), choose(constant));
        }
        machine
    }

    /// Sockets, cores and hardware threads, in the usual notation.
    pub fn shape(&self) -> String {
        let topology = self.machine().topology;
        let Topology { sockets, cores_per_socket, threads_per_core, .. } = topology;
        let threads = match threads_per_core {
            1 => String::new(),
            threads => format!(" x {threads}"),
        };
        format!("{sockets} x {cores_per_socket}{threads} = {} CPUs", topology.cpus())
    }

    /// The text of the file.
    pub fn to_toml(&self) -> String {
        write::write(self)
    }
}

/// A machine of this shape in which no number is set yet.
fn blank(name: &str, distance: &[Vec<u8>]) -> Machine {
    let topology = Topology {
        sockets: 0,
        cores_per_socket: 0,
        threads_per_core: 0,
        sockets_per_node: 1,
        distance: distance.to_vec(),
    };
    let classes = topology.distances();
    let misses = || Misses {
        modified: vec![0; classes],
        shared: vec![0; classes],
        uncached: vec![0; classes],
    };
    let nothing = Capacity { bytes: 0, ways: 0 };
    let caches =
        Caches { l1: nothing, l1_hit: 0, same_line: 0, l2: nothing, l2_hit: 0, llc: nothing };
    Machine {
        name: name.to_owned(),
        topology,
        latency: Latencies {
            load: misses(),
            store: misses(),
            rmw: misses(),
            store_hit: 0,
            rmw_hit: 0,
        },
        directory: Directory {
            hold: 0,
            combining: Combining::Socket,
            migratory: false,
            shared_read_occupancy: 0,
            read_occupancy: 0,
            contention: 0,
            rmw_at_home: 0,
        },
        caches,
        bandwidth: Bandwidth { memory_occupancy: 0, link_occupancy: 0 },
        persist: Persist::default(),
        core: Core {
            ghz: 0.0,
            counter_ghz: None,
            store_buffer: 0,
            fence: 0,
            prefetches: 0,
            branch_miss: 0,
            pause: 0,
            clock_read: 0,
            smt_slowdown: 1.0,
            tsc_skew: Vec::new(),
            clock_boundary: 0,
        },
        os: Os {
            time_slice: 0,
            context_switch: 0,
            migration: 0,
            futex_wait: 0,
            futex_wake: 0,
            wake_thread: 0,
            wake_path: 0,
            idle_exit: 0,
            yield_call: 0,
            timer_slack: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_machine_is_a_field() {
        // Set each field to a number of its own: if the machine's text then has no field at its
        // blank value, none is missing.
        let distance = vec![vec![0, 1], vec![1, 0]];
        let mut machine = blank("m", &distance);
        for (index, field) in FIELDS.iter().enumerate() {
            let classes = if field.per_distance { 2 } else { 1 };
            (0..classes).for_each(|class| field.set(&mut machine, class, (1000 + index) as f64));
        }
        let text = format!("{machine:?}");
        assert!(!text.contains(": 0,") && !text.contains(": 0.0"), "{text}");
        assert!(!text.contains("[0, 0]"), "{text}");
    }

    #[test]
    fn boundaries_of_clocks_are_cited_or_derived_and_hold_the_skew() {
        for name in names() {
            let model = find(name).unwrap();
            let machine = model.machine();
            let boundary = model.constant("core.clock_boundary", 0).unwrap();
            match boundary.provenance {
                Provenance::Cited => assert_eq!(boundary.from.as_deref(), Some("ordo"), "{name}"),
                _ => assert_eq!(boundary.value, machine.derived_clock_boundary() as f64, "{name}"),
            }
            let most = |constant: &Constant| match constant.field.path {
                "core.tsc_skew" => constant.high,
                _ => constant.value,
            };
            let machine = model.machine_with(most);
            assert!(machine.core.clock_difference() <= machine.core.clock_boundary, "{name}");
        }
    }

    #[test]
    fn a_constant_can_be_chosen_otherwise() {
        let model = find("xeon-e7-8870-8x15-like").unwrap();
        let slow = model.machine_with(|constant| match constant.field.is_transfer() {
            true => constant.value * 1.4,
            false => constant.value,
        });
        let usual = model.machine();
        let expected = (usual.latency.rmw.modified[2] as f64 * 1.4).round() as u64;
        assert_eq!(slow.latency.rmw.modified[2], expected);
        assert_eq!(slow.caches, usual.caches);
    }
}
