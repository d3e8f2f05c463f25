//! The page's data: the profile without the parts that the page does not show.

use std::collections::{BTreeMap, HashMap};

use crate::command::joined;
use crate::profile::{
    CacheMisses, Cause, Convoy, Cpu, End, Frame, KernelLock, KernelRun, Lock, Order, Origin,
    OtherNodes, Outsider, Profile, Sampling, Times, Waited,
};
use crate::profile::{FunctionCalls, MovedCalls};
use serde::Serialize;

use super::cut::{Cut, Limits};
use super::samples::Samples;
use crate::render::stacks::{end, stacks};

#[derive(Debug, Serialize)]
pub struct Digest {
    command: String,
    host: Option<String>,
    lock: String,
    wall: f64,
    end: String,
    finding: String,
    next: Option<String>,
    sampling: Sampling,
    cpu: Cpu,
    locks: Vec<Row>,
    stacks: Vec<(Option<usize>, u64, Vec<usize>)>,
    timeline: Option<Timeline>,
    threads: Vec<Thread>,
    blocking: Vec<Blocking>,
    cycles: Vec<Circle>,
    orders: Vec<Step>,
    convoys: Vec<Queue>,
    notes: Vec<Note>,
    kernel: Option<KernelRun>,
    cache_misses: Option<CacheMisses>,
    cpu_samples: Option<Samples>,
    system_calls: Option<MovedCalls>,
    conditions: Vec<Condition>,
    processes: Vec<Process>,
    not_interposed: Vec<Outsider>,
    /// What is not on the page, in words.
    left_out: Vec<String>,
    /// Calls: what they are called, and where they are.
    frames: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    short: String,
    kind: String,
    /// As in the profile, or `kernel`.
    origin: String,
    module: Option<String>,
    objects: u64,
    acquired: Option<u64>,
    contended: u64,
    share: Option<f64>,
    moved: Option<f64>,
    wait: Times,
    hold: Option<Times>,
    frames: Vec<usize>,
    sites: Vec<Site>,
}

#[derive(Debug, Serialize)]
struct Site {
    name: String,
    share: f64,
    frames: Vec<usize>,
    /// For a lock of the kernel: the owner's calls meanwhile.
    owner_frames: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Timeline {
    interval: f64,
    intervals: Vec<Interval>,
}

#[derive(Debug, Default, Serialize)]
struct Interval {
    cpu: Cpu,
    waits: Vec<Wait>,
}

/// A lock, or none if it is left out; attempts that had to wait; nanoseconds.
type Wait = (Option<usize>, u64, u64);

#[derive(Debug, Serialize)]
struct Thread {
    pid: u32,
    tid: u32,
    name: String,
    cpu: Cpu,
    acquired: u64,
    waits: Vec<Wait>,
}

#[derive(Debug, Serialize)]
struct Blocking {
    lock: Option<usize>,
    waits: u64,
    ns: u64,
    waiter: Vec<usize>,
    holder: Vec<usize>,
}

/// Steps that close a circle.
#[derive(Debug, Serialize)]
struct Circle {
    steps: Vec<Step>,
    deadlocked: bool,
    gives_up: bool,
}

#[derive(Debug, Serialize)]
struct Step {
    held: Option<usize>,
    wanted: Option<usize>,
    seen: u64,
    held_frames: Vec<usize>,
    wanted_frames: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Queue {
    lock: Option<usize>,
    start: f64,
    length_ns: u64,
    waiters_max: u32,
}

#[derive(Debug, Serialize)]
struct Note {
    cause: Cause,
    /// Absent if it is about the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<Option<usize>>,
    advice: String,
    evidence: String,
}

#[derive(Debug, Serialize)]
struct Condition {
    name: String,
    short: String,
    waits: u64,
    timeouts: u64,
    wait: Times,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    program: String,
    threads: u32,
    lock_spin: f64,
    lock_wait: f64,
    end: End,
}

impl Digest {
    /// The digest of a profile, within these limits.
    pub fn of(profile: &Profile, limits: &Limits) -> Self {
        let mut cut = Cut::new(profile, limits);
        let locks = cut.locks(profile);
        let stacks = cut.stacks(profile);
        let timeline = profile.timeline.as_ref().map(|timeline| cut.timeline(timeline));
        let threads = cut.threads(profile);
        let orders = cut.part("lock orders", &profile.orders);
        let orders = orders.iter().map(|order| cut.step(order)).collect();
        let cycles = cut.part("possible deadlocks", &profile.cycles).iter();
        let cycles = cycles
            .map(|one| Circle {
                steps: one.orders.iter().map(|at| cut.step(&profile.orders[*at])).collect(),
                deadlocked: one.deadlocked,
                gives_up: one.gives_up,
            })
            .collect();
        let blocking = cut.blocking(profile);
        Self {
            command: cut.text(&joined(&profile.command)),
            host: profile.host.as_ref().map(|host| cut.sentence(&host.to_string())),
            lock: cut.text(&profile.lock),
            wall: profile.wall,
            end: end(profile.exit),
            finding: cut.sentence(&profile.finding),
            next: profile.next.as_deref().map(|next| cut.sentence(next)),
            sampling: profile.sampling,
            cpu: profile.cpu,
            locks,
            stacks,
            timeline,
            threads,
            blocking,
            cycles,
            orders,
            convoys: cut.part("queues", &profile.convoys).iter().map(|c| cut.queue(c)).collect(),
            notes: cut.notes(profile),
            kernel: profile.kernel.as_ref().map(|kernel| cut.kernel(kernel)),
            cache_misses: profile.cache_misses.as_ref().map(|misses| cut.cache_misses(misses)),
            cpu_samples: profile.cpu_samples.as_ref().map(|samples| cut.samples(samples)),
            system_calls: profile.system_calls.as_ref().map(|calls| cut.system_calls(calls)),
            conditions: cut.conditions(profile),
            processes: cut.processes(profile),
            not_interposed: cut.outsiders(profile),
            left_out: cut.left_out,
            frames: cut.frames,
        }
    }
}

impl Cut {
    fn locks(&mut self, profile: &Profile) -> Vec<Row> {
        let kept = std::mem::take(&mut self.kept);
        let mut rows: Vec<Row> = kept.iter().map(|at| self.row(&profile.locks[*at])).collect();
        let kernel = self.part("locks of the kernel", &profile.kernel_locks);
        rows.extend(kernel.iter().map(|lock| self.kernel_row(lock)));
        rows
    }

    fn row(&mut self, lock: &Lock) -> Row {
        let site = |cut: &mut Self, site: &crate::profile::Site| Site {
            name: cut.text(&site.name),
            share: site.share,
            frames: cut.calls(&site.frames),
            owner_frames: Vec::new(),
        };
        // For a futex of the program's own, only the waits were seen.
        let counted = |share: f64| (lock.is_counted()).then_some(share);
        Row {
            name: self.text(&lock.name),
            short: self.text(&lock.title()),
            kind: self.text(&lock.kind),
            origin: word(lock.origin),
            module: lock.module.as_ref().map(|module| self.text(module)),
            objects: lock.objects,
            acquired: (lock.is_counted()).then_some(lock.acquired),
            contended: lock.contended,
            share: counted(lock.contended_share),
            moved: counted(lock.moved_share()),
            wait: lock.wait,
            hold: lock.held_ns().map(|held| Times { total_ns: held as u64, ..lock.hold }),
            frames: self.calls(&lock.frames),
            sites: lock.waits_in.iter().map(|one| site(self, one)).collect(),
        }
    }

    /// A row for a lock of the kernel, of which only waits are known. It shows stacks where a
    /// program's lock has its places.
    fn kernel_row(&mut self, lock: &KernelLock) -> Row {
        let all: f64 = lock.stacks.iter().map(|stack| stack.wait_ns as f64).sum();
        let stacks = lock.stacks.iter().take(8);
        let sites = stacks.map(|stack| {
            let cgroup = stack.cgroup.as_ref().map(|cgroup| format!(" in {cgroup}"));
            Site {
                name: self.text(&format!("{}{}", stack.task, cgroup.unwrap_or_default())),
                share: stack.wait_ns as f64 / all.max(1.0),
                frames: self.calls(&stack.frames),
                owner_frames: self.calls(&stack.owner_frames),
            }
        });
        let sites = sites.collect();
        let how = if lock.spins { ", spins" } else { "" };
        Row {
            name: self.text(&lock.name),
            short: self.text(&lock.title()),
            kind: format!("{}{how}", self.text(&lock.kind)),
            origin: "kernel".to_owned(),
            module: None,
            objects: lock.objects,
            acquired: None,
            contended: lock.contended,
            share: None,
            moved: None,
            wait: lock.wait,
            hold: None,
            frames: Vec::new(),
            sites,
        }
    }

    /// The stacks of the program's locks, and then those of the kernel's; the longest waits first.
    fn stacks(&mut self, profile: &Profile) -> Vec<(Option<usize>, u64, Vec<usize>)> {
        let mut all: Vec<(Option<usize>, u64, Vec<&Frame>)> = stacks(profile)
            .into_iter()
            .map(|one| (self.place(one.lock), one.ns, one.frames.iter().rev().collect()))
            .collect();
        let first = self.places.len();
        for (place, lock) in profile.kernel_locks.iter().take(self.limits.rows).enumerate() {
            all.extend(lock.stacks.iter().map(|stack| {
                (Some(first + place), stack.wait_ns, stack.frames.iter().rev().collect())
            }));
        }
        all.sort_by_key(|(_, ns, _)| std::cmp::Reverse(*ns));
        if all.len() > self.limits.stacks {
            let cut = all.len() - self.limits.stacks;
            self.left_out.push(format!("{cut} of {} stacks, the shortest waits", all.len()));
            all.truncate(self.limits.stacks);
        }
        let frames_max = self.limits.frames;
        all.into_iter()
            .map(|(lock, ns, frames)| {
                // The innermost calls tell most.
                let skipped = frames.len().saturating_sub(frames_max);
                let calls = frames.into_iter().skip(skipped).map(|frame| self.call(frame));
                (lock, ns, calls.collect())
            })
            .collect()
    }

    /// The timeline, with longer intervals if there are too many, and with only the locks that are
    /// on the page.
    fn timeline(&mut self, timeline: &crate::profile::Timeline) -> Timeline {
        let together = timeline.intervals.len().div_ceil(self.limits.intervals).max(1);
        let merged = timeline.intervals.chunks(together).map(|chunk| {
            let mut cpu = Cpu::default();
            for one in chunk {
                cpu.kernel += one.cpu.kernel;
                cpu.program += one.cpu.program;
                cpu.lock_spin += one.cpu.lock_spin;
                cpu.lock_wait += one.cpu.lock_wait;
            }
            let waits = chunk.iter().flat_map(|one| &one.waits);
            Interval { cpu, waits: self.waits(waits, 20) }
        });
        Timeline { interval: timeline.interval * together as f64, intervals: merged.collect() }
    }

    /// The longest waits, and the sum of the others as one wait without a lock.
    fn waits<'w>(&self, all: impl Iterator<Item = &'w Waited>, most: usize) -> Vec<Wait> {
        let mut sums: HashMap<Option<usize>, (u64, u64)> = HashMap::new();
        for one in all {
            let sum = sums.entry(self.place(one.lock)).or_default();
            sum.0 = sum.0.saturating_add(one.contended);
            sum.1 = sum.1.saturating_add(one.wait_ns);
        }
        let mut waits: Vec<Wait> =
            sums.into_iter().map(|(lock, (contended, ns))| (lock, contended, ns)).collect();
        waits.sort_by_key(|(lock, _, ns)| (lock.is_none(), std::cmp::Reverse(*ns), *lock));
        let others = waits.split_off(waits.len().min(most));
        if !others.is_empty() {
            let sum =
                |part: fn(&Wait) -> u64| others.iter().map(part).fold(0_u64, u64::saturating_add);
            waits.push((None, sum(|wait| wait.1), sum(|wait| wait.2)));
        }
        waits
    }

    fn threads(&mut self, profile: &Profile) -> Vec<Thread> {
        let threads = self.part("threads", &profile.threads).iter();
        let kept = threads.map(|thread| Thread {
            pid: thread.pid,
            tid: thread.tid,
            name: self.text(&thread.name),
            cpu: thread.cpu,
            acquired: thread.acquired,
            waits: self.waits(thread.waits.iter(), 20),
        });
        kept.collect()
    }

    fn blocking(&mut self, profile: &Profile) -> Vec<Blocking> {
        let pairs = self.part("pairs of waiter and holder", &profile.blocking).iter();
        let kept = pairs.map(|pair| Blocking {
            lock: self.place(pair.lock),
            waits: pair.waits,
            ns: pair.wait_ns,
            waiter: self.calls(&pair.waiter),
            holder: self.calls(&pair.holder),
        });
        kept.collect()
    }

    fn step(&mut self, order: &Order) -> Step {
        Step {
            held: self.place(order.held),
            wanted: self.place(order.wanted),
            seen: order.seen,
            held_frames: self.calls(&order.held_frames),
            wanted_frames: self.calls(&order.wanted_frames),
        }
    }

    fn queue(&self, convoy: &Convoy) -> Queue {
        let Convoy { lock, start, length_ns, waiters_max } = *convoy;
        Queue { lock: self.place(lock), start, length_ns, waiters_max }
    }

    fn notes(&mut self, profile: &Profile) -> Vec<Note> {
        let notes = self.part("notes", &profile.notes).iter();
        let kept = notes.map(|note| Note {
            cause: note.cause,
            lock: note.lock.map(|lock| self.place(lock)),
            advice: self.sentence(&note.advice),
            evidence: self.sentence(&note.evidence),
        });
        kept.collect()
    }

    fn system_calls(&mut self, calls: &MovedCalls) -> MovedCalls {
        let functions = self.part("functions of system calls", &calls.functions).iter();
        let kept = functions.map(|one| FunctionCalls {
            name: self.text(&one.name),
            reasons: self.reasons(&one.reasons),
            ..*one
        });
        let functions = kept.collect();
        let cpus = self.part("CPUs for system calls", &calls.cpus).to_vec();
        let cpus_used = self.part("CPUs for system calls", &calls.cpus_used).to_vec();
        MovedCalls { mechanism: self.text(&calls.mechanism), cpus, cpus_used, functions, ..*calls }
    }

    fn reasons(&self, all: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
        let mut most: Vec<_> = all.iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let kept = most.into_iter().take(self.limits.rows);
        kept.map(|(why, count)| (self.text(why), *count)).collect()
    }

    fn conditions(&mut self, profile: &Profile) -> Vec<Condition> {
        let all = self.part("condition variables", &profile.conditions).iter();
        let kept = all.map(|one| Condition {
            name: self.text(&one.name),
            short: self.text(&one.short),
            waits: one.waits,
            timeouts: one.timeouts,
            wait: one.wait,
        });
        kept.collect()
    }

    fn outsiders(&mut self, profile: &Profile) -> Vec<Outsider> {
        let all = self.part("other processes", &profile.not_interposed).iter();
        let kept = all.map(|one| Outsider {
            pid: one.pid,
            parent: one.parent,
            program: self.text(&one.program),
            why: self.sentence(&one.why),
        });
        kept.collect()
    }

    fn kernel(&mut self, run: &KernelRun) -> KernelRun {
        let limits = self.part("limits of what was seen of the kernel", &run.limits).iter();
        KernelRun { limits: limits.map(|limit| self.sentence(limit)).collect(), ..*run }
    }

    fn cache_misses(&self, misses: &CacheMisses) -> CacheMisses {
        let why = |refused: &Option<String>| refused.as_deref().map(|why| self.sentence(why));
        let other_nodes = misses.other_nodes.as_ref().map(|other| OtherNodes {
            event: other.event.as_deref().map(|event| self.text(event)),
            refused: why(&other.refused),
            ..*other
        });
        CacheMisses { refused: why(&misses.refused), other_nodes, ..*misses }
    }

    fn processes(&mut self, profile: &Profile) -> Vec<Process> {
        let all = self.part("processes", &profile.processes).iter();
        let kept = all.map(|one| Process {
            pid: one.pid,
            program: self.text(&one.program),
            threads: one.threads,
            lock_spin: one.lock_spin,
            lock_wait: one.lock_wait,
            end: one.end,
        });
        kept.collect()
    }
}

/// What a profile calls it.
fn word(origin: Origin) -> String {
    let word = serde_json::to_value(origin).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
