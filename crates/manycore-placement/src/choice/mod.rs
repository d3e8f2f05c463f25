//! What is done, and why.
//!
//! Rules for all policies: no CPU outside of the affinity mask and the control group is chosen. One
//! hardware thread of a core is enough (two system calls on one core share the resources that make
//! them fast), except where groups need every CPU. And each step leaves a sentence.

mod auto;
mod near;

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::machine::Machine;
use crate::problem::Problem;
use crate::request::{Mechanism, Policy, Request};

/// The number of sockets that each CPU of a node serves before `cross-node` goes to the next node.
/// A guess: no publication gives it.
const SPILL: u32 = 8;

/// Where system calls are executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What was asked for.
    pub asked: Policy,
    /// The chosen policy. It remains `auto` if calls are not moved.
    pub policy: Policy,
    /// How calls are moved.
    pub mechanism: Mechanism,
    /// CPUs that belong together, the nearest to the card first. No group is empty or has a CPU of
    /// another group.
    pub groups: Vec<CpuSet>,
    /// Which group serves a socket.
    pub rule: Rule,
    /// Whether calls on files are moved, too.
    pub files: bool,
    /// Whether calls are executed in place where moving them is measured to cost more than it
    /// saves.
    pub bypass: bool,
    /// Why, in sentences.
    pub reasons: Vec<String>,
}

/// Which group of CPUs serves a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Round robin over the first.
    First,
    /// The group of the CPU of the thread that opens the socket; the first group, if that CPU is in
    /// none.
    Own,
    /// The first group whose CPUs do not each serve this many sockets already.
    Spill(u32),
}

impl Choice {
    /// All CPUs that may execute moved calls.
    pub fn cpus(&self) -> CpuSet {
        let groups = match self.rule {
            Rule::First => &self.groups[..1],
            Rule::Own | Rule::Spill(_) => &self.groups[..],
        };
        groups.iter().fold(CpuSet::default(), |all, group| all.or(group))
    }

    /// Whether `auto` has found that moving calls cannot help here: then the program should stay
    /// unchanged.
    pub fn leaves_alone(&self) -> bool {
        self.policy == Policy::Auto
    }

    /// As the library under the program reads it.
    pub fn settings(&self) -> String {
        let groups: Vec<String> = self.groups.iter().map(CpuSet::to_string).collect();
        let rule = match self.rule {
            Rule::First => "first".to_owned(),
            Rule::Own => "own".to_owned(),
            Rule::Spill(sockets) => format!("spill-{sockets}"),
        };
        let word = |yes| if yes { "yes" } else { "no" };
        format!(
            "{}:cpus={}:rule={rule}:files={}:bypass={}",
            self.mechanism,
            groups.join("/"),
            word(self.files),
            word(self.bypass)
        )
    }
}

/// Chooses CPUs on this machine.
///
/// # Errors
/// If CPUs were named that may not be used.
pub fn choose(request: &Request, machine: &Machine) -> Result<Choice, Problem> {
    let mut finding = Finding::new(request, machine)?;
    let asked = request.policy;
    let policy = match asked {
        Policy::Auto => auto::policy(&mut finding),
        policy => Some(policy),
    };
    let (groups, rule) = finding.groups(policy.unwrap_or(Policy::Auto), request);
    let mechanism = match policy {
        Some(_) => request.mechanism.unwrap_or(Mechanism::Pool),
        None => Mechanism::InPlace,
    };
    let reasons = finding.reasons;
    Ok(Choice {
        asked,
        policy: policy.unwrap_or(Policy::Auto),
        mechanism,
        groups,
        rule,
        files: request.files,
        bypass: request.bypass.unwrap_or(asked == Policy::Auto),
        reasons,
    })
}

/// A choice that is being made.
struct Finding<'a> {
    machine: &'a Machine,
    /// The CPUs to choose from.
    allowed: CpuSet,
    /// Whether the user named them: then each is meant.
    named: bool,
    reasons: Vec<String>,
}

impl<'a> Finding<'a> {
    fn new(request: &Request, machine: &'a Machine) -> Result<Self, Problem> {
        let limits = &machine.limits;
        let mut allowed = limits.allowed.clone();
        let mut reasons = Vec::new();
        let outside = machine.topology.online().without(&allowed);
        if !outside.is_empty() {
            reasons.push(format!(
                "not used: {}, which the affinity mask or the control group excludes",
                outside.named()
            ));
        }
        if let Some(named) = &request.cpus {
            let outside = named.without(&allowed);
            if !outside.is_empty() {
                return Err(Problem::new(
                    format!(
                        "cpus={named}: {outside} may not be used (offline, or outside of the affinity mask or the control group)"
                    ),
                    format!("choose among {allowed}"),
                ));
            }
            reasons.push(format!("only {}: so it was asked for", named.named()));
            allowed = named.clone();
        }
        if let Some(quota) = limits.quota {
            reasons.push(format!(
                "the control group gives the time of {quota:.1} CPUs: threads that serve calls take from it"
            ));
        }
        Ok(Self { machine, allowed, named: request.cpus.is_some(), reasons })
    }

    fn say(&mut self, reason: impl Into<String>) {
        self.reasons.push(reason.into());
    }

    /// The groups of a policy that moves calls, and which of them serves a socket.
    fn groups(&mut self, policy: Policy, request: &Request) -> (Vec<CpuSet>, Rule) {
        let (groups, rule) = match policy {
            Policy::NicLlc => (vec![self.near_card()], Rule::First),
            Policy::SingleNode => {
                let node = self.cards_node();
                (self.by_nodes_from(node).into_iter().take(1).collect(), Rule::First)
            }
            Policy::CrossNode => {
                let node = self.cards_node();
                let sockets = request.threshold.unwrap_or(SPILL);
                let groups = self.by_nodes_from(node);
                self.say(format!(
                    "a node is left for the next, by distance, once each of its CPUs serves {sockets} sockets"
                ));
                (groups, Rule::Spill(sockets))
            }
            Policy::PerNode => {
                self.say(
                    "calls on a socket are executed on the node of the thread that opened it: the card does not count",
                );
                let first = self.machine.topology.nodes[0].number;
                let groups = self.by_nodes_from(first);
                let outside = self.machine.limits.allowed.without(&self.allowed);
                if !outside.is_empty() {
                    self.say(format!(
                        "threads on {} have theirs on CPUs {}",
                        outside.named(),
                        groups[0]
                    ));
                }
                // All hardware threads are in groups: calls from a CPU in no group would go to the
                // first group.
                return (groups, Rule::Own);
            }
            // In place: wherever the caller may run.
            Policy::Auto => return (vec![self.allowed.clone()], Rule::First),
        };
        let groups = groups.into_iter().map(|group| self.threads_of(group)).collect();
        (groups, rule)
    }

    /// The CPUs of each node that may be used, the nearest node first.
    fn by_nodes_from(&self, node: usize) -> Vec<CpuSet> {
        let nodes = self.machine.topology.nodes_from(node).into_iter();
        nodes.map(|node| node.cpus.and(&self.allowed)).filter(|cpus| !cpus.is_empty()).collect()
    }

    /// Takes one hardware thread of each core, unless the user named the CPUs.
    fn threads_of(&mut self, group: CpuSet) -> CpuSet {
        let first = self.machine.topology.one_thread_a_core(&group);
        if self.named || first == group {
            return group;
        }
        let others = group.without(&first);
        self.say(format!("of each core one hardware thread: {first}, and not {others}"));
        first
    }
}
