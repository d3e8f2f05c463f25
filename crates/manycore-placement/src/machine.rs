//! All that a choice looks at.

use serde::Serialize;

use crate::limits::Limits;
use crate::network::Nic;
use crate::problem::Problem;
use crate::topology::Topology;
use crate::tree::Tree;

/// The machine, its network card, and the permitted parts of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// CPUs, nodes and caches.
    pub topology: Topology,
    /// The card, if there is one.
    pub nic: Option<Nic>,
    /// What may be used.
    pub limits: Limits,
    /// What had to be found out in another way than usual.
    pub notes: Vec<String>,
}

impl Machine {
    /// Reads the whole machine, with the network device of this name or the default route's.
    ///
    /// # Errors
    /// If there is no such device, no CPU may be used, or a file makes no sense.
    pub fn read(tree: &Tree, device: Option<&str>) -> Result<Self, Problem> {
        let topology = Topology::read(tree)?;
        let mut notes = Vec::new();
        let nic = Nic::read(tree, device, &mut notes)?;
        let limits = Limits::read(tree, &topology.online())?;
        Ok(Self { topology, nic, limits, notes })
    }
}
