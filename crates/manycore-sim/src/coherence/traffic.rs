//! The load on memory nodes and links, and counts of line movements.

use crate::machine::{Cycles, Machine};

/// Requests that are served one after the other. A new request waits for the ones before it, which
/// are served as time passes.
#[derive(Clone, Copy, Debug, Default)]
struct Backlog {
    waiting: Cycles,
    since: Cycles,
}

impl Backlog {
    /// Adds a request that takes `occupancy`; returns how long it waits.
    fn wait(&mut self, now: Cycles, occupancy: Cycles) -> Cycles {
        let wait = self.waiting.saturating_sub(now.saturating_sub(self.since));
        *self = Self { waiting: wait + occupancy, since: now.max(self.since) };
        wait
    }
}

/// How often lines moved, by distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Transfers from cache to cache, and requests for the right to write: an entry for each class
    /// of distance.
    pub transfers: Vec<u64>,
    /// Transfers from memory, by the distance to the node.
    pub from_memory: Vec<u64>,
    /// Modified lines that no cache had room for.
    pub write_backs: u64,
    /// Reads that were combined: another core of the socket was already getting the line.
    pub combined: u64,
}

/// The state of memory nodes and links.
#[derive(Debug)]
pub(super) struct Traffic {
    memory_occupancy: Cycles,
    link_occupancy: Cycles,
    persist_occupancy: Cycles,
    nodes: Vec<Backlog>,
    /// The persistent memory of each node.
    persistent: Vec<Backlog>,
    /// By origin, then destination.
    links: Vec<Backlog>,
    sockets: usize,
    pub(super) messages: Messages,
}

impl Traffic {
    pub(super) fn new(machine: &Machine) -> Self {
        let topology = &machine.topology;
        let (nodes, sockets) = (topology.nodes() as usize, topology.sockets as usize);
        let distances = topology.distances();
        let messages = Messages {
            transfers: vec![0; distances],
            from_memory: vec![0; distances],
            ..Messages::default()
        };
        Self {
            memory_occupancy: machine.bandwidth.memory_occupancy,
            link_occupancy: machine.bandwidth.link_occupancy,
            persist_occupancy: machine.persist.occupancy,
            nodes: vec![Backlog::default(); nodes],
            persistent: vec![Backlog::default(); nodes],
            links: vec![Backlog::default(); sockets * sockets],
            sockets,
            messages,
        }
    }

    /// Adds a line to the link between two sockets; returns how long it waits.
    pub(super) fn link(&mut self, from: u32, to: u32, now: Cycles) -> Cycles {
        if from == to || self.link_occupancy == 0 {
            return 0;
        }
        let link = &mut self.links[from as usize * self.sockets + to as usize];
        link.wait(now, self.link_occupancy)
    }

    /// Adds a line to a memory node; returns how long it waits.
    pub(super) fn memory(&mut self, node: u32, now: Cycles) -> Cycles {
        if self.memory_occupancy == 0 {
            return 0;
        }
        self.nodes[node as usize].wait(now, self.memory_occupancy)
    }

    /// Adds a line to the persistent memory of a node; returns how long it waits.
    pub(super) fn persist(&mut self, node: u32, now: Cycles) -> Cycles {
        self.persistent[node as usize].wait(now, self.persist_occupancy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_drains_with_time() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.wait(100, 10), 0);
        assert_eq!(backlog.wait(100, 10), 10);
        assert_eq!(backlog.wait(105, 10), 15);
        assert_eq!(backlog.wait(1000, 10), 0);
    }
}
