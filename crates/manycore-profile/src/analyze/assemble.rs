//! From what processes left behind to a profile: names, sums, times.

use std::collections::HashMap;

use manycore_measure::Host;

use crate::analyze::advice;
use crate::analyze::cpu_samples::Samples;
use crate::analyze::finding::{self, Circumstances};
use crate::analyze::futex::Futexes;
use crate::analyze::groups::Groups;
use crate::analyze::groups::name::Identity;
use crate::analyze::groups::overflow_processes::Others;
use crate::analyze::names::symbols::Symbols;
use crate::analyze::process::ProcessStats;
use crate::analyze::run_analysis::threads::SeenThreads;
use crate::analyze::run_analysis::timeline::TimelineBuilder;
use crate::analyze::run_analysis::{blocking, convoys, neighbours, orders, threads};
use crate::clock::Rate;
use crate::profile::{
    CacheMisses, Cpu, CpuSamples, End, Exit, KernelLock, KernelRun, Lock, MovedCalls, Outsider,
    Process, Profile, SCHEMA, Sampling,
};

/// What is known of a run from outside.
#[derive(Debug)]
pub struct Run {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// How it ended.
    pub exit: Exit,
    /// The lock algorithm that it was started with.
    pub lock: String,
    /// Whether the library was put under it.
    pub is_interposed: bool,
    /// From its start to its end, in seconds.
    pub wall: f64,
    /// CPU time of all processes in the kernel, in seconds.
    pub kernel: f64,
    /// CPU time of all processes outside of the kernel, in seconds.
    pub user: f64,
    /// How to read the processes' times.
    pub rate: Rate,
    /// Whether it ran until it was asked to end, as servers do.
    pub is_server: bool,
    /// Processes that still run.
    pub running: Vec<u32>,
    /// Processes that were seen and left no statistics.
    pub not_interposed: Vec<Outsider>,
    /// How many processes, not counting the program itself, did not report their end: they may have
    /// become programs that are not counted.
    pub silent: usize,
    /// What was seen of it while it ran.
    pub watched: Watched,
}

/// What was seen of a run while it ran.
#[derive(Debug, Default)]
pub struct Watched {
    /// The events over time, until the program's end; `None` if nothing was sampled.
    pub timeline: Option<TimelineBuilder>,
    /// Its threads.
    pub threads: SeenThreads,
    /// The waits for futexes that do not belong to the library's locks.
    pub futexes: Futexes,
    /// Processes beyond those that are kept one by one.
    pub others: Others,
    /// Samples of the CPU time, or why there are none; `None` if they were not requested.
    pub samples: Option<Result<Samples, String>>,
    /// The kernel's locks; none if they were not watched.
    pub kernel: Option<KernelSeen>,
    /// Reads that no cache had; none if they were not counted.
    pub cache_misses: Option<CacheMisses>,
    /// The results for system calls; `None` if calls were not to be moved.
    pub system_calls: Option<MovedCalls>,
}

/// What was seen of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSeen {
    /// How.
    pub run: KernelRun,
    /// Its locks, most waited for first.
    pub locks: Vec<KernelLock>,
}

/// The locks of all processes, added up.
struct Added {
    sum: Groups,
    /// The identity under which each record is shown, by process and number.
    identities: HashMap<(usize, u32), Identity>,
    symbols: Symbols,
    processes: Vec<Process>,
    sampling: Sampling,
}

/// Adds up the locks of all processes, and gives each process its own.
fn add_up(run: &mut Run, stats: &[ProcessStats]) -> Added {
    let mut others = std::mem::take(&mut run.watched.others);
    // Their stacks are known by these.
    let mut symbols = std::mem::take(&mut others.symbols);
    let mut identities = others.records();
    let sampling = stats.iter().map(|one| one.sampling).fold(others.sampling, Sampling::and);
    let mut processes: Vec<Process> = as_one(&others, run, &symbols).into_iter().collect();
    let mut sum = std::mem::take(&mut others.groups);
    let (futexes, rate) = (&run.watched.futexes, &run.rate);
    let mut unseen = futexes.processes();
    for (place, one) in stats.iter().enumerate().filter(|(_, one)| !one.recorded.is_empty()) {
        let mut groups = Groups::of(one, &mut symbols, |record, identity| {
            identities.insert((place, record), identity);
        });
        // The kernel knows a process by its number. If the process ran several programs, all its
        // data counts for the last one.
        if stats[place + 1..].iter().all(|later| later.pid != one.pid) {
            unseen.remove(&one.pid);
            let modules = Some(&*one.modules);
            groups.add(futexes.groups(one.pid, modules, &mut symbols, rate, &mut identities));
        }
        processes.push(process(one, &groups, (stats, &others), run, &symbols));
        sum.add(groups);
    }
    for pid in unseen {
        let modules = stats.iter().rfind(|one| one.pid == pid).map(|one| &*one.modules);
        sum.add(futexes.groups(pid, modules, &mut symbols, rate, &mut identities));
    }
    processes.sort_by(|a, b| a.started.total_cmp(&b.started));
    Added { sum, identities, symbols, processes, sampling }
}

/// Makes the profile of a run.
pub fn assemble(mut run: Run, stats: &[ProcessStats]) -> Profile {
    let Added { sum, identities, mut symbols, mut processes, sampling } = add_up(&mut run, stats);
    let (mut locks, rows) = (sum.locks(&run.rate, &symbols), sum.rows(identities));
    bound_holds(&mut locks, &mut processes, run.wall);
    let (spin, lock_wait) = sum.waits(&run.rate);
    let (orders, cycles) = orders::of(stats, &rows, &mut symbols);
    let timeline = run.watched.timeline.map(|timeline| timeline.timeline(stats, &rows, &run.rate));
    let over_time = timeline.as_ref().map_or((0.0, 0), |it| (it.interval, it.intervals.len()));
    let divide = |samples: Samples| samples.divide(stats, &mut symbols, over_time);
    let samples = run.watched.samples.map(|taken| taken.map_or_else(CpuSamples::refused, divide));
    let ready = threads::ready(stats, &run.watched.threads);
    let (kernel, kernel_locks) = run.watched.kernel.map(|seen| (seen.run, seen.locks)).unzip();
    let system_calls = run.watched.system_calls;
    let circumstances = Circumstances {
        is_interposed: run.is_interposed,
        is_server: run.is_server,
        silent: run.silent,
        not_interposed: run.not_interposed.len(),
    };
    // Without the library no process has records, so they need not be listed as missing.
    let is_news = run.is_interposed || system_calls.is_some();
    let profile = Profile {
        schema: SCHEMA,
        cpu: Cpu { ready, ..Cpu::of(run.user, run.kernel, spin, spin + lock_wait) },
        command: run.command,
        host: Some(run.host),
        exit: run.exit,
        lock: run.lock,
        wall: run.wall,
        sampling,
        conditions: sum.conditions(&run.rate, &symbols),
        processes,
        not_interposed: if is_news { run.not_interposed } else { Vec::new() },
        stacks: sum.stacks(&run.rate, &symbols),
        timeline,
        threads: threads::of(stats, &run.watched.threads, &rows, &run.rate),
        blocking: blocking::of(stats, &rows, &locks, &mut symbols),
        orders,
        cycles,
        convoys: convoys::of(stats, &rows, &run.rate),
        notes: Vec::new(),
        locks,
        kernel,
        kernel_locks: kernel_locks.unwrap_or_default(),
        cache_misses: run.watched.cache_misses,
        cpu_samples: samples,
        system_calls,
        finding: String::new(),
        next: None,
    };
    let notes = advice::of(&profile, &neighbours::of(stats, &rows));
    let (finding, next) = finding::of(&profile, &circumstances);
    Profile { notes, finding, next, ..profile }
}

/// Sampled holds are not longer than the run allows.
fn bound_holds(locks: &mut [Lock], processes: &mut [Process], wall: f64) {
    let threads = processes.iter().map(|process| process.threads).sum();
    let of_processes = processes.iter_mut().flat_map(|process| &mut process.locks);
    for lock in locks.iter_mut().chain(of_processes) {
        lock.bound_holds(wall, threads);
    }
}

fn process(
    one: &ProcessStats,
    groups: &Groups,
    (all, others): (&[ProcessStats], &Others),
    run: &Run,
    symbols: &Symbols,
) -> Process {
    let replaced = others.have_replaced(one.pid, one.started)
        || all.iter().any(|other| other.pid == one.pid && other.started > one.started);
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

/// The processes that are not kept one by one, if there are any.
fn as_one(others: &Others, run: &Run, symbols: &Symbols) -> Option<Process> {
    let (lock_spin, lock_wait) = others.groups.waits(&run.rate);
    (others.count > 0).then(|| Process {
        pid: 0,
        parent: 0,
        program: format!("({} more processes)", others.count),
        started: run.rate.seconds_since_start(others.started.unwrap_or_default()),
        end: End::Exited,
        threads: others.threads,
        lock_spin,
        lock_wait,
        unrecorded: others.unrecorded,
        locks: others.groups.locks(&run.rate, symbols),
        conditions: others.groups.conditions(&run.rate, symbols),
    })
}
