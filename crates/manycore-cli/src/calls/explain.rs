//! `--explain`: the known properties of the machine, the chosen CPUs, and the reasons.

use std::fmt::Write;

use manycore_measure::{Cell, Column, Table, Tone};
use manycore_placement::{Choice, ControlGroups, CpuSet, Machine, Mechanism, Nic, Route, Rule};
use serde_json::{Value, json};

/// For people.
pub fn as_text(choice: &Choice, machine: &Machine) -> String {
    let mut text = format!("{}\n\nWhy:\n", outcome(choice));
    for reason in &choice.reasons {
        let _ = writeln!(text, "  - {reason}");
    }
    let _ = writeln!(text, "\nMachine: {}\n{}", shape(machine), nodes(choice, machine));
    let _ = writeln!(text, "\nNetwork: {}", network(machine.nic.as_ref()));
    if let Some(nic) = machine.nic.as_ref().filter(|nic| !nic.interrupts.is_empty()) {
        let _ = writeln!(text, "{}", interrupts(nic));
    }
    let _ = writeln!(text, "\nMay be used: {}", limits(machine));
    for note in machine.topology.notes.iter().chain(&machine.notes) {
        let _ = writeln!(text, "Note: {note}");
    }
    let _ = writeln!(text, "\nFor the library: MANYCORE_SYSCALLS={}", choice.settings());
    text
}

/// For programs.
pub fn as_json(choice: &Choice, machine: &Machine) -> Value {
    json!({
        "schema": 1,
        "settings": choice.settings(),
        "cpus": choice.cpus(),
        "choice": choice,
        "machine": machine,
        "serving": machine.nic.as_ref().map(Nic::serving).unwrap_or_default(),
    })
}

/// The choice in a sentence.
fn outcome(choice: &Choice) -> String {
    let asked = match choice.asked == choice.policy {
        true => choice.policy.to_string(),
        false => format!("{}, which comes to {}", choice.asked, choice.policy),
    };
    if choice.mechanism == Mechanism::InPlace {
        return format!("System calls ({asked}): executed in place, by the thread that makes them");
    }
    let groups: Vec<String> = choice.groups.iter().map(CpuSet::to_string).collect();
    let where_to = match choice.rule {
        Rule::First => format!("on CPUs {}, in turn", groups[0]),
        Rule::Own => format!("on the caller's of CPUs {}", groups.join(" or ")),
        Rule::Spill(sockets) => {
            format!("on CPUs {}, each next over {sockets} sockets a CPU", groups.join(", then "))
        }
    };
    format!("System calls ({asked}), by {}: {where_to}", choice.mechanism)
}

fn shape(machine: &Machine) -> String {
    let topology = &machine.topology;
    let count =
        |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    format!(
        "CPUs {} online: {}, {}, {}, {}",
        topology.online(),
        count(topology.packages(), "package"),
        count(topology.cores(), "core"),
        count(topology.last_levels().len(), "last-level cache"),
        count(topology.nodes.len(), "memory node"),
    )
}

/// A row for each memory node.
fn nodes(choice: &Choice, machine: &Machine) -> Table {
    let topology = &machine.topology;
    let mut table = Table::new([
        Column::words("node"),
        Column::words("CPUs"),
        Column::words("last-level caches"),
        Column::words("distances"),
        Column::words("chosen"),
    ]);
    let words = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    for node in &topology.nodes {
        let of_node = |cache: &&CpuSet| !cache.and(&node.cpus).is_empty();
        let caches = topology.last_levels().into_iter().filter(of_node);
        let caches: Vec<String> = caches.map(|cache| format!("[{cache}]")).collect();
        let chosen = choice.cpus().and(&node.cpus);
        let chosen = match chosen.is_empty() || choice.mechanism == Mechanism::InPlace {
            true => Cell::new("-", Tone::Faint),
            false => chosen.to_string().into(),
        };
        table.row([
            node.number.to_string().into(),
            node.cpus.to_string().into(),
            caches.join(" ").into(),
            words(&node.distances).into(),
            chosen,
        ]);
    }
    table
}

fn network(nic: Option<&Nic>) -> String {
    let Some(nic) = nic else { return "no default route over a card that is known".to_owned() };
    let how = match nic.route {
        Route::Default => "the default route's",
        Route::Named => "as named",
    };
    let hardware = match &nic.hardware[..] {
        _ if nic.loopback => "it only leads back to this machine".to_owned(),
        [] => "a device of software only".to_owned(),
        [own] if *own == nic.name => "a card".to_owned(),
        parts => format!("stands on {}", parts.join(", ")),
    };
    let node = nic.node.map_or("its node is not told".to_owned(), |node| format!("at node {node}"));
    let queues = &nic.queues;
    let steering = |what: &str, cpus: &CpuSet| match cpus.is_empty() {
        true => format!("no {what}"),
        false => format!("{what} to CPUs {cpus}"),
    };
    format!(
        "{} ({how}; {hardware}; {node}), {} receive and {} transmit queues, {}, {}",
        nic.name,
        queues.receive,
        queues.transmit,
        steering("RPS", &queues.rps),
        steering("XPS", &queues.xps),
    )
}

/// A row for each interrupt that came, or could.
fn interrupts(nic: &Nic) -> Table {
    let mut table = Table::new([
        Column::words("interrupt"),
        Column::words("name"),
        Column::words("CPUs"),
        Column::number("came"),
        Column::words("for packets"),
    ]);
    for interrupt in &nic.interrupts {
        let cpus = match interrupt.cpus.is_empty() {
            true => "none".to_owned(),
            false => interrupt.cpus.to_string(),
        };
        let tone = if interrupt.of_queue { Tone::Plain } else { Tone::Faint };
        table.row([
            interrupt.number.to_string().into(),
            interrupt.name.as_str().into(),
            cpus.into(),
            interrupt.count.to_string().into(),
            Cell::new(if interrupt.of_queue { "yes" } else { "no" }, tone),
        ]);
    }
    table
}

fn limits(machine: &Machine) -> String {
    let limits = &machine.limits;
    let groups = match limits.groups {
        None => "no control group limits CPUs".to_owned(),
        Some(version) => {
            let version = if version == ControlGroups::V1 { "v1" } else { "v2" };
            let set = limits.cpuset.as_ref().map(|set| format!(" has CPUs {set}"));
            let quota = limits.quota.map(|quota| format!(" gives the time of {quota:.1} CPUs"));
            let parts: Vec<String> = [set, quota].into_iter().flatten().collect();
            format!("the control group ({version}){}", parts.join(" and"))
        }
    };
    format!("CPUs {}: the affinity mask has {}, {groups}", limits.allowed, limits.affinity)
}
