//! From what processes left behind to a profile: names, sums, times.

use manycore_report::Host;

use crate::clock::Rate;
use crate::finding;
use crate::groups::Groups;
use crate::process::ProcessStats;
use crate::profile::{Cpu, End, Exit, Outsider, Process, Profile, SCHEMA, Sampling};
use crate::symbols::Symbols;

/// What is known of a run from outside.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// How it ended.
    pub exit: Exit,
    /// The lock algorithm that it was started with.
    pub lock: String,
    /// From its start to its end, in seconds.
    pub wall: f64,
    /// CPU time of all its processes in the kernel, in seconds.
    pub kernel: f64,
    /// CPU time of all its processes outside of the kernel, in seconds.
    pub user: f64,
    /// How to read the processes' times.
    pub rate: Rate,
    /// Whether it ran until somebody asked it to end, as servers do.
    pub is_server: bool,
    /// Processes that still run.
    pub running: Vec<u32>,
    /// Processes that were seen and left no statistics.
    pub not_interposed: Vec<Outsider>,
}

/// Makes the profile of a run.
pub fn assemble(run: Run, stats: &[ProcessStats]) -> Profile {
    let mut symbols = Symbols::default();
    let mut sum = Groups::default();
    let mut processes = Vec::new();
    for one in stats.iter().filter(|one| !one.recorded.is_empty()) {
        let groups = Groups::of(one, &mut symbols);
        processes.push(process(one, &groups, stats, &run, &symbols));
        sum.add(groups);
    }
    processes.sort_by(|a, b| a.started.total_cmp(&b.started));
    let is_server = run.is_server;
    let sampling = stats.iter().map(|one| one.sampling).fold(Sampling::default(), Sampling::and);
    let mut profile = Profile {
        schema: SCHEMA,
        cpu: split(&run, &sum),
        command: run.command,
        host: Some(run.host),
        exit: run.exit,
        lock: run.lock,
        wall: run.wall,
        sampling,
        locks: sum.locks(&run.rate, &symbols),
        conditions: sum.conditions(&run.rate, &symbols),
        processes,
        not_interposed: run.not_interposed,
        stacks: sum.stacks(&run.rate, &symbols),
        timeline: None,
        threads: Vec::new(),
        blocking: Vec::new(),
        orders: Vec::new(),
        cycles: Vec::new(),
        convoys: Vec::new(),
        notes: Vec::new(),
        kernel: None,
        kernel_locks: Vec::new(),
        finding: String::new(),
        next: None,
    };
    (profile.finding, profile.next) = finding::of(&profile, is_server);
    profile
}

fn process(
    one: &ProcessStats,
    groups: &Groups,
    all: &[ProcessStats],
    run: &Run,
    symbols: &Symbols,
) -> Process {
    let replaced = all.iter().any(|other| other.pid == one.pid && other.started > one.started);
    let end = match one.exited {
        true => End::Exited,
        false if replaced => End::Replaced,
        false if run.running.contains(&one.pid) => End::Running,
        false => End::CutShort,
    };
    let (lock_spin, lock_wait) = groups.waits(&run.rate);
    Process {
        pid: one.pid,
        parent: one.parent,
        program: one.program(),
        started: run.rate.seconds_since_start(one.started),
        end,
        threads: one.threads,
        lock_spin,
        lock_wait,
        unrecorded: one.unrecorded,
        locks: groups.locks(&run.rate, symbols),
        conditions: groups.conditions(&run.rate, symbols),
    }
}

/// Divides the time so that no part contains another.
fn split(run: &Run, groups: &Groups) -> Cpu {
    let (spin, lock_wait) = groups.waits(&run.rate);
    let all = run.kernel + run.user;
    // The samples' sum may exceed what there was.
    let lock_spin = spin.min(all);
    // A wait's CPU time is not known by kernel and user: it is taken from both alike.
    let rest = if all > 0.0 { 1.0 - lock_spin / all } else { 1.0 };
    Cpu { kernel: run.kernel * rest, program: run.user * rest, lock_spin, lock_wait }
}
