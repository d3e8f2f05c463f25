//! From what processes left behind to a profile: names, sums, times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use manycore_report::Host;

use crate::clock::Rate;
use crate::finding;
use crate::layout::{Histogram, Kind};
use crate::name::{self, Identity, Name};
use crate::process::ProcessStats;
use crate::profile::{
    Condition, Cpu, End, Exit, Lock, Outsider, Process, Profile, SCHEMA, Sampling, Site, Times,
};
use crate::symbols::Symbols;
use crate::tally::{Tally, Waiters};

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

/// Of the places where threads wait for a lock, so many are kept.
const SITES_MAX: usize = 4;

/// Makes the profile of a run.
pub fn assemble(run: Run, stats: &[ProcessStats]) -> Profile {
    let mut symbols = Symbols::default();
    let mut sum = Groups::default();
    let mut processes = Vec::new();
    for one in stats.iter().filter(|one| !one.recorded.is_empty()) {
        let groups = Groups::of(one, &mut symbols);
        processes.push(process(one, &groups, stats, &run));
        sum.add(groups);
    }
    processes.sort_by(|a, b| a.started.total_cmp(&b.started));
    let is_server = run.is_server;
    let (locks, conditions) = (sum.locks(&run.rate), sum.conditions(&run.rate));
    let sampling =
        stats.iter().find(|one| one.sampling != Sampling::default()).map(|one| one.sampling);
    let mut profile = Profile {
        schema: SCHEMA,
        cpu: split(&run, &sum),
        command: run.command,
        host: Some(run.host),
        exit: run.exit,
        lock: run.lock,
        wall: run.wall,
        sampling: sampling.unwrap_or_default(),
        locks,
        conditions,
        processes,
        not_interposed: run.not_interposed,
        stacks: Vec::new(),
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

fn process(one: &ProcessStats, groups: &Groups, all: &[ProcessStats], run: &Run) -> Process {
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
        locks: groups.locks(&run.rate),
        conditions: groups.conditions(&run.rate),
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

/// Objects that are shown as one, by what they have in common.
#[derive(Default)]
struct Groups {
    groups: HashMap<Identity, Group>,
}

struct Group {
    name: Name,
    kind: Kind,
    objects: u64,
    tally: Tally,
    /// The longest total wait, in ticks, of a single object.
    hottest: u64,
    waiters: HashMap<Identity, Waiting>,
}

/// A place where threads waited.
struct Waiting {
    name: Name,
    /// Sampled waits, and their time in ticks.
    waits: u64,
    wait: u64,
}

impl Groups {
    fn of(stats: &ProcessStats, symbols: &mut Symbols) -> Self {
        let mut groups = Self::default();
        for recorded in &stats.recorded {
            let (identity, name) = name::of(recorded, &stats.modules, symbols);
            let mut tally = Tally::default();
            tally.add(&recorded.tally);
            let objects =
                if recorded.is_rest { stats.unrecorded } else { recorded.objects.max(1).into() };
            let hottest = tally.wait;
            let waiters = HashMap::new();
            let mut group = Group { name, kind: recorded.kind, objects, tally, hottest, waiters };
            for waiters in &recorded.waiters {
                let Waiters { ref frames, waits, wait } = *waiters;
                let (place, name) =
                    name::of_waiters(frames, recorded.kind, &stats.modules, symbols);
                group.waited_at(place, Waiting { name, waits, wait });
            }
            groups.insert(identity, group);
        }
        groups
    }

    fn add(&mut self, other: Self) {
        for (identity, group) in other.groups {
            self.insert(identity, group);
        }
    }

    fn insert(&mut self, identity: Identity, group: Group) {
        match self.groups.entry(identity) {
            Entry::Vacant(entry) => {
                entry.insert(group);
            }
            Entry::Occupied(mut entry) => {
                let sum = entry.get_mut();
                sum.objects += group.objects;
                sum.tally.add(&group.tally);
                sum.hottest = sum.hottest.max(group.hottest);
                group.waiters.into_iter().for_each(|(place, more)| sum.waited_at(place, more));
            }
        }
    }

    /// Most waited first, then most used; by name where that is equal, so that output is the same each time.
    fn sorted(&self, wanted: impl Fn(Kind) -> bool) -> Vec<&Group> {
        let mut sorted: Vec<_> = self.groups.values().filter(|group| wanted(group.kind)).collect();
        let rank = |group: &Group| (group.tally.wait, group.tally.acquired());
        sorted.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.name.full.cmp(&b.name.full)));
        sorted
    }

    fn locks(&self, rate: &Rate) -> Vec<Lock> {
        self.sorted(|kind| kind != Kind::Cond).iter().map(|group| group.lock(rate)).collect()
    }

    fn conditions(&self, rate: &Rate) -> Vec<Condition> {
        self.sorted(|kind| kind == Kind::Cond).iter().map(|group| group.condition(rate)).collect()
    }

    /// Seconds in waits for locks, on the CPU and off it.
    fn waits(&self, rate: &Rate) -> (f64, f64) {
        let locks = || self.groups.values().filter(|group| group.kind != Kind::Cond);
        let spin = locks().map(|group| group.tally.spin_ns as f64).sum::<f64>() / 1e9;
        let all = locks().map(|group| rate.ns(group.tally.wait)).sum::<f64>() / 1e9;
        (spin, (all - spin).max(0.0))
    }
}

impl Group {
    fn waited_at(&mut self, place: Identity, more: Waiting) {
        match self.waiters.entry(place) {
            Entry::Vacant(entry) => {
                entry.insert(more);
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().waits += more.waits;
                entry.get_mut().wait += more.wait;
            }
        }
    }

    /// Where threads waited most.
    fn waits_in(&self) -> Vec<Site> {
        let mut sorted: Vec<_> = self.waiters.values().collect();
        sorted.sort_by(|a, b| b.wait.cmp(&a.wait).then_with(|| a.name.full.cmp(&b.name.full)));
        let all = sorted.iter().map(|waiting| waiting.wait).sum();
        let site = |waiting: &&Waiting| Site {
            name: waiting.name.full.clone(),
            short: waiting.name.short.clone(),
            waits: waiting.waits,
            share: share(waiting.wait, all),
            frames: waiting.name.frames.clone(),
        };
        sorted.iter().take(SITES_MAX).map(site).collect()
    }

    fn lock(&self, rate: &Rate) -> Lock {
        let Self { name, tally, .. } = self;
        let attempts = tally.acquired() + tally.timeouts;
        Lock {
            name: name.full.clone(),
            short: name.short.clone(),
            origin: name.origin,
            module: name.module.clone(),
            kind: name::of_kind(self.kind).to_owned(),
            objects: self.objects,
            acquired: tally.acquired(),
            exclusive: tally.exclusive,
            shared: tally.shared,
            contended: tally.contended,
            contended_shared: tally.contended_shared,
            contended_share: share(tally.contended, attempts),
            timeouts: tally.timeouts,
            handoffs: tally.handoffs,
            wait: self.wait(rate),
            hold: self.hold(rate),
            hottest_share: if tally.wait == 0 { 1.0 } else { share(self.hottest, tally.wait) },
            frames: name.frames.clone(),
            waits_in: self.waits_in(),
        }
    }

    fn condition(&self, rate: &Rate) -> Condition {
        let Self { name, tally, .. } = self;
        Condition {
            name: name.full.clone(),
            short: name.short.clone(),
            origin: name.origin,
            module: name.module.clone(),
            objects: self.objects,
            waits: tally.contended,
            timeouts: tally.timeouts,
            wait: self.wait(rate),
            frames: name.frames.clone(),
            waits_in: self.waits_in(),
        }
    }

    fn wait(&self, rate: &Rate) -> Times {
        let Tally { contended, wait, wait_max, distributions, .. } = &self.tally;
        times(*contended, *wait, *wait_max, distributions.as_deref().map(|d| &d.wait), rate)
    }

    fn hold(&self, rate: &Rate) -> Times {
        let Tally { holds, hold, hold_max, distributions, .. } = &self.tally;
        times(*holds, *hold, *hold_max, distributions.as_deref().map(|d| &d.hold), rate)
    }
}

fn times(
    count: u64,
    total: u64,
    longest: u64,
    distribution: Option<&Histogram>,
    rate: &Rate,
) -> Times {
    let ns = |ticks: u64| rate.ns(ticks).round() as u64;
    let known = |value: u64| (count > 0).then_some(value);
    Times {
        count,
        total_ns: ns(total),
        mean_ns: known((rate.ns(total) / count.max(1) as f64).round() as u64),
        // A bucket's middle can lie beyond the longest.
        p99_ns: distribution.and_then(|d| d.quantile(0.99)).map(|ticks| ns(ticks.min(longest))),
        max_ns: known(ns(longest)),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
