//! `auto`: the policy that suits the machine, or none where moving calls cannot help.

use super::Finding;
use crate::cpu_set::CpuSet;
use crate::request::Policy;

/// Fewer cores than this have none to spare for system calls.
const CORES_MIN: usize = 4;

/// A group with less than a quarter of the cores would be a bottleneck for all of them.
const SHARE_MIN: usize = 4;

/// The policy; nothing if calls are to stay where they are made.
pub(super) fn policy(finding: &mut Finding) -> Option<Policy> {
    match obstacle(finding) {
        Some(why) => {
            finding.say(format!("calls are executed in place: {why}"));
            None
        }
        None => Some(fitting(finding)),
    }
}

/// Why moving calls would save nothing here.
fn obstacle(finding: &Finding) -> Option<String> {
    let topology = &finding.machine.topology;
    let allowed = &finding.allowed;
    let cores = topology.one_thread_a_core(allowed).len();
    let caches: Vec<CpuSet> = used_caches(finding);
    if let [_] = caches[..] {
        return Some(format!(
            "{} {} one last-level cache, so no line of the kernel's has to cross between packages, and a moved call costs a message",
            allowed.named(),
            allowed.verb("share")
        ));
    }
    if cores < CORES_MIN {
        return Some(format!("there are {cores} cores to run on, and none to spare"));
    }
    if let Some(quota) = finding.machine.limits.quota.filter(|quota| *quota < CORES_MIN as f64) {
        return Some(format!(
            "the control group gives the time of {quota:.1} CPUs, and none to spare"
        ));
    }
    let serving = finding.serving();
    if serving.is_empty() {
        return Some(finding.why_no_card());
    }
    let near = topology.near(&serving).and(allowed);
    if near.is_empty() {
        return Some(format!("none of {} is near {}", allowed.named(), finding.whose(&serving)));
    }
    if near == *allowed {
        return Some(format!(
            "{} are spread over all {} last-level caches: no CPU is nearer to the packets than another",
            finding.whose(&serving),
            caches.len()
        ));
    }
    None
}

/// The smallest set of CPUs around the card that is no bottleneck.
fn fitting(finding: &mut Finding) -> Policy {
    let topology = &finding.machine.topology;
    let cores = |cpus: &CpuSet| topology.one_thread_a_core(cpus).len();
    let all = cores(&finding.allowed);
    let enough = all.div_ceil(SHARE_MIN);
    let near = cores(&topology.near(&finding.serving()).and(&finding.allowed));
    if near >= enough {
        finding.say(format!(
            "nic-llc: {near} of {all} cores share the last-level cache with the interrupts, and keep what the kernel has of a connection in it"
        ));
        return Policy::NicLlc;
    }
    let few = format!(
        "{near} of {all} cores share the last-level cache with the interrupts: too few for all calls"
    );
    let node = finding.cards_node();
    let of_node = finding.machine.topology.node(node).map(|node| node.cpus.and(&finding.allowed));
    let of_node = of_node.map_or(0, |cpus| finding.machine.topology.one_thread_a_core(&cpus).len());
    if of_node >= enough {
        finding.say(format!("single-node: {few}; the node has {of_node}"));
        return Policy::SingleNode;
    }
    finding.say(format!(
        "cross-node: {few}; the node has {of_node}, so the next nodes help under load"
    ));
    Policy::CrossNode
}

/// The parts of the caches that may be used.
fn used_caches(finding: &Finding) -> Vec<CpuSet> {
    let caches = finding.machine.topology.last_levels().into_iter();
    caches.map(|cache| cache.and(&finding.allowed)).filter(|cpus| !cpus.is_empty()).collect()
}
