//! The card's neighbourhood.

use super::Finding;
use crate::cpu_set::CpuSet;
use crate::network::{Nic, Route};

impl Finding<'_> {
    /// The CPUs that process what the card receives.
    pub(super) fn serving(&self) -> CpuSet {
        let topology = &self.machine.topology;
        let serving = self.machine.nic.as_ref().map(Nic::serving).unwrap_or_default();
        serving.and(&topology.online())
    }

    /// Why there is no such CPU.
    pub(super) fn why_no_card(&self) -> String {
        match &self.machine.nic {
            None => "there is no default route over a network card that is known".to_owned(),
            Some(nic) if nic.loopback => format!(
                "{} only leads back to this machine: it has no interrupt, packets are processed by the CPU that sends",
                nic.name
            ),
            Some(nic) if nic.hardware.is_empty() => {
                format!("{} is a device of software only: it has no interrupt", nic.name)
            }
            Some(nic) => format!("no CPU is seen to serve an interrupt of {}", nic.name),
        }
    }

    /// The CPUs that may be used and share a last-level cache with those that serve the card.
    pub(super) fn near_card(&mut self) -> CpuSet {
        let topology = &self.machine.topology;
        let serving = self.serving();
        if serving.is_empty() {
            let why = self.why_no_card();
            let node = self.known_node();
            let within = node.and_then(|node| topology.node(node)).map(|node| &node.cpus);
            let cpus = self.largest_cache(within);
            self.say(format!(
                "{why}; {} {} the last-level cache that has the most of the CPUs that may be used",
                cpus.named(),
                cpus.verb("share")
            ));
            return cpus;
        }
        let whose = self.whose(&serving);
        let near = topology.near(&serving);
        let usable = near.and(&self.allowed);
        if usable.is_empty() {
            let node = self.cards_node();
            let cpus = self.by_nodes_from(node).swap_remove(0);
            self.say(format!(
                "{} {} the last-level cache with {whose}; none that may be used is among them, and the nearest that may: {}",
                near.named(), near.verb("share"), cpus.named()
            ));
            return cpus;
        }
        let caches = topology.last_levels();
        let count = caches.iter().filter(|cache| !cache.and(&serving).is_empty()).count();
        let caches = if count == 1 {
            "the last-level cache".to_owned()
        } else {
            format!("one of {count} last-level caches")
        };
        self.say(format!("{} {} {caches} with {whose}", usable.named(), usable.verb("share")));
        usable
    }

    /// The memory node of the card: where calls come first.
    pub(super) fn cards_node(&mut self) -> usize {
        let topology = &self.machine.topology;
        if let Some(node) = self.known_node() {
            let name = self.machine.nic.as_ref().map_or("the card", |nic| nic.name.as_str());
            let cpus = topology.node(node).map(|node| node.cpus.clone()).unwrap_or_default();
            let usable = cpus.and(&self.allowed);
            self.say(match usable.is_empty() {
                false => format!("{name} is at node {node}, of whose CPUs {usable} may be used"),
                true => format!("{name} is at node {node}, none of whose CPUs may be used: the nearest nodes are taken"),
            });
            return node;
        }
        let serving = self.serving();
        let of_first = |cpus: &CpuSet| {
            cpus.first().and_then(|cpu| topology.cpu(cpu)).map_or(0, |cpu| cpu.node)
        };
        if serving.is_empty() {
            let node = of_first(&self.allowed);
            let why = self.why_no_card();
            self.say(format!("{why}; node {node} has the first CPU that may be used"));
            return node;
        }
        let node = topology
            .nodes
            .iter()
            .max_by_key(|node| (node.cpus.and(&serving).len(), std::cmp::Reverse(node.number)));
        let node = node.map_or_else(|| of_first(&serving), |node| node.number);
        let whose = self.whose(&serving);
        self.say(format!("the kernel does not tell the card's node: {node} has most of {whose}"));
        node
    }

    /// The node that the kernel gives for the card, if it has such a node.
    fn known_node(&self) -> Option<usize> {
        let node = self.machine.nic.as_ref()?.node?;
        self.machine.topology.node(node).map(|node| node.number)
    }

    /// The last-level cache with the most CPUs that may be used: those CPUs. Only CPUs of `within`
    /// count, if any of these may be used.
    fn largest_cache(&self, within: Option<&CpuSet>) -> CpuSet {
        let allowed = match within.map(|cpus| cpus.and(&self.allowed)) {
            Some(cpus) if !cpus.is_empty() => cpus,
            _ => self.allowed.clone(),
        };
        let caches = self.machine.topology.last_levels().into_iter();
        let usable = caches.map(|cache| cache.and(&allowed));
        // The first among equals.
        usable.rev().max_by_key(CpuSet::len).unwrap_or(allowed)
    }

    /// Those CPUs as a sentence calls them.
    pub(super) fn whose(&self, serving: &CpuSet) -> String {
        let Some(nic) = &self.machine.nic else { return serving.named() };
        let how = match nic.route {
            Route::Default => " (the default route's)",
            Route::Named => "",
        };
        let what = match nic.queues.with_rps {
            0 => format!("{} the interrupts of", serving.verb("serve")),
            _ => format!("{} the packets of RPS on", serving.verb("get")),
        };
        format!("{}, which {what} {}{how}", serving.named(), nic.name)
    }
}
