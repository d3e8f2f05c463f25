//! What each thread did.

use std::collections::{HashMap, HashSet};

use crate::analyze::process::ProcessStats;
use crate::clock::Rate;
use crate::profile::{Cpu, Thread, Waited};
use manycore_stats::Kind;

use crate::analyze::groups::Rows;
use crate::analyze::process::noted::ListedThread;

/// This many threads are kept, over all processes.
const KEPT: usize = 2_048;
/// This many locks are kept of each.
const LOCKS_KEPT: usize = 32;

/// What was seen of a thread while it ran.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// CPU time outside of the kernel, in seconds.
    pub user: f64,
    /// CPU time in the kernel, in seconds.
    pub kernel: f64,
    /// The scheduler's counts, in seconds: on a CPU, and ready but without one. `None` if the
    /// kernel does not count.
    pub scheduled: Option<(f64, f64)>,
}

impl Seen {
    /// The time for which the thread was ready but without a CPU, until it had used this much CPU
    /// time. After the last sample, its rate is assumed to continue.
    fn ready(&self, cpu: f64) -> Option<f64> {
        /// If only a small part of a thread was observed, its rest is unknown.
        const LONGER_MAX: f64 = 2.0;
        let (ran, ready) = self.scheduled?;
        Some(ready * (cpu / ran.max(f64::MIN_POSITIVE)).clamp(1.0, LONGER_MAX))
    }
}

/// Seconds in which threads were ready and had no CPU; `None` if no thread was seen.
pub(crate) fn ready(stats: &[ProcessStats], seen: &SeenThreads) -> Option<f64> {
    let mut cpu: HashMap<(u32, u32), f64> = HashMap::new();
    for one in stats {
        for listed in &one.noted.thread_entries {
            cpu.insert((one.pid, listed.thread), listed.cpu_ns as f64 / 1e9);
        }
    }
    let used = |key: &(u32, u32)| cpu.get(key).copied().unwrap_or_default();
    let ready = seen.iter().filter_map(|(key, seen)| seen.ready(used(key)));
    ready.fold(None, |sum: Option<f64>, ready| Some(sum.unwrap_or_default() + ready))
}

/// Threads that were seen, by process and number.
pub type SeenThreads = HashMap<(u32, u32), Seen>;

/// All threads, the longest waits first; those beyond the limits as one.
pub(crate) fn of(
    stats: &[ProcessStats],
    seen: &SeenThreads,
    rows: &Rows,
    rate: &Rate,
) -> Vec<Thread> {
    let mut threads = Vec::new();
    let mut others = Others::default();
    for (process, one) in stats.iter().enumerate() {
        // With the seconds waited for locks of the program's own making, which are not in the
        // entry's sum.
        let mut waits: HashMap<u32, (Vec<Waited>, f64)> = HashMap::new();
        let made = one.recorded.iter().filter(|recorded| recorded.kind == Kind::Made);
        let made: HashSet<u32> = made.map(|recorded| recorded.number).collect();
        for wait in &one.noted.waits {
            if let Some(lock) = rows.get(&(process, wait.record)) {
                let (list, of_made) = waits.entry(wait.thread_entry).or_default();
                if made.contains(&wait.record) {
                    *of_made += rate.ns(wait.wait) / 1e9;
                }
                let wait_ns = rate.ns(wait.wait).round() as u64;
                add(list, Waited { lock: *lock, contended: wait.contended, wait_ns });
            }
        }
        for listed in &one.noted.thread_entries {
            let waits = waits.remove(&listed.number).unwrap_or_default();
            let seen = seen.get(&(one.pid, listed.thread));
            let thread = thread(one.pid, listed, seen, waits, rate);
            if listed.number == 0 {
                others.add(thread, one.noted.unlisted.into());
            } else if thread.acquired > 0 || !thread.waits.is_empty() {
                threads.push(thread);
            }
        }
    }
    threads.sort_by(|a, b| rank(b).cmp(&rank(a)).then((a.pid, a.tid).cmp(&(b.pid, b.tid))));
    for thread in threads.split_off(threads.len().min(KEPT)) {
        others.add(thread, 1);
    }
    for thread in &mut threads {
        keep_longest(&mut thread.waits);
    }
    threads.extend(others.sum());
    threads
}

fn rank(thread: &Thread) -> (u64, u64) {
    (thread.waits.iter().map(|waited| waited.wait_ns).sum(), thread.acquired)
}

/// Adds a wait for a lock that may be in the list.
fn add(list: &mut Vec<Waited>, more: Waited) {
    match list.iter_mut().find(|waited| waited.lock == more.lock) {
        Some(waited) => {
            waited.contended += more.contended;
            waited.wait_ns += more.wait_ns;
        }
        None => list.push(more),
    }
}

fn keep_longest(waits: &mut Vec<Waited>) {
    waits.sort_by(|a, b| (b.wait_ns, a.lock).cmp(&(a.wait_ns, b.lock)));
    waits.truncate(LOCKS_KEPT);
}

fn thread(
    pid: u32,
    listed: &ListedThread,
    seen: Option<&Seen>,
    (waits, made): (Vec<Waited>, f64),
    rate: &Rate,
) -> Thread {
    let (user, kernel) = cpu_time(listed, seen);
    // A name that was given later than that of the entry.
    let name = match seen {
        Some(seen) if listed.at_end.is_none() && !seen.name.is_empty() => &seen.name,
        _ => &listed.name,
    };
    let spin = listed.spin_ns as f64 / 1e9;
    let waited = rate.ns(listed.wait) / 1e9 + made;
    Thread {
        pid,
        tid: listed.thread,
        name: name.clone(),
        cpu: Cpu {
            ready: seen.and_then(|seen| seen.ready(listed.cpu_ns as f64 / 1e9)),
            ..Cpu::of(user, kernel, spin, waited)
        },
        acquired: listed.acquired,
        waits,
    }
}

/// Seconds outside of the kernel and in it.
fn cpu_time(listed: &ListedThread, seen: Option<&Seen>) -> (f64, f64) {
    if let Some((user, kernel)) = listed.at_end {
        return (user as f64 / 1e9, kernel as f64 / 1e9);
    }
    let (user, kernel) = seen.map_or((0.0, 0.0), |seen| (seen.user, seen.kernel));
    // The parts of a later measurement are unknown; they are assumed to be as before.
    let more = (listed.cpu_ns as f64 / 1e9 - user - kernel).max(0.0);
    let share = if user + kernel > 0.0 { user / (user + kernel) } else { 1.0 };
    (user + more * share, kernel + more * (1.0 - share))
}

/// Threads beyond the limits.
#[derive(Default)]
struct Others {
    count: u64,
    cpu: Cpu,
    acquired: u64,
    waits: Vec<Waited>,
}

impl Others {
    fn add(&mut self, thread: Thread, count: u64) {
        self.count += count;
        self.acquired += thread.acquired;
        self.cpu.kernel += thread.cpu.kernel;
        self.cpu.program += thread.cpu.program;
        self.cpu.lock_spin += thread.cpu.lock_spin;
        self.cpu.lock_wait += thread.cpu.lock_wait;
        thread.waits.into_iter().for_each(|waited| add(&mut self.waits, waited));
    }

    fn sum(mut self) -> Option<Thread> {
        keep_longest(&mut self.waits);
        let Self { count, cpu, acquired, waits } = self;
        let name = format!("({count} more threads)");
        (count > 0).then_some(Thread { pid: 0, tid: 0, name, cpu, acquired, waits })
    }
}
