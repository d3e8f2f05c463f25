//! Pictures of a running program: its locks' activity until now, and in the last interval.
//!
//! A [`Snapshot`] has the counts of a process at a moment. The difference of two snapshots
//! describes the time between them. It is turned into a picture like the counts of a whole run, so
//! places, threads and distributions are also those of the interval. Looked-up names of addresses
//! are kept from one picture to the next.
//!
//! A wait that is under way is not counted yet. But its duration so far is part of both pictures,
//! because otherwise a stuck program would look idle. Only the mean is over finished waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::analyze::groups::Groups;
use crate::analyze::groups::name::Identity;
use crate::analyze::names::symbols::Symbols;
use crate::analyze::process::ProcessStats;
use crate::analyze::process::decode::Recorded;
use crate::analyze::run_analysis::threads::SeenThreads;
use crate::analyze::run_analysis::{blocking, threads};
use crate::clock::Rate;
use crate::profile::{Blocking, Cpu, Lock, Stack, Thread};
use manycore_stats::{Mapping, SLABS};

/// The keys that distinguish the locks of one program, from one picture to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockId(Identity);

impl LockId {
    /// A key that no lock of a program has: for pictures that are made by hand.
    pub fn numbered(number: u64) -> Self {
        Self(Identity::Unplaced(number, u32::MAX))
    }
}

/// The counts of a process at a moment, and the threads that waited then.
#[derive(Debug)]
pub struct Snapshot {
    stats: ProcessStats,
    waiting: Vec<UnderWay>,
}

/// A wait that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    record: u32,
    thread: u32,
    ticks: u64,
}

impl Snapshot {
    /// The state of a process at the time `now` of the counter of ticks. Without a time the process
    /// has ended, and no thread waits.
    pub fn at(mapping: &Mapping, now: Option<u64>) -> Self {
        let stats = ProcessStats::read(mapping);
        // Read after the counts, so that a wait that ends in between is in neither of the two,
        // rather than in both.
        let waiting = now.map_or_else(Vec::new, |now| under_way(mapping, now));
        Self { stats, waiting }
    }

    /// What was counted.
    pub fn stats(&self) -> &ProcessStats {
        &self.stats
    }

    /// All until now.
    fn until_now(&self) -> ProcessStats {
        let recorded = self.stats.recorded.iter().map(|one| with_tally(one, |now| now.copied()));
        let mut whole = ProcessStats { recorded: recorded.collect(), ..self.without_locks() };
        whole.noted = self.stats.noted.until_now();
        let ticks = self.ticks_under_way();
        for one in &mut whole.recorded {
            let (sum, longest) = ticks.get(&one.number).copied().unwrap_or_default();
            one.tally.wait += sum;
            one.tally.wait_max = one.tally.wait_max.max(longest);
        }
        whole
    }

    /// The changes since an earlier snapshot of the same process.
    fn since(&self, before: &Self) -> ProcessStats {
        let old: HashMap<u32, &Recorded> =
            before.stats.recorded.iter().map(|one| (one.number, one)).collect();
        let (ticks, ticks_before) = (self.ticks_under_way(), before.ticks_under_way());
        let recorded = self.stats.recorded.iter().map(|one| {
            let mut since = with_tally(one, |now| match old.get(&one.number) {
                Some(old) => now.since(&old.tally),
                None => now.copied(),
            });
            let (sum, longest) = ticks.get(&one.number).copied().unwrap_or_default();
            let (sum_before, _) = ticks_before.get(&one.number).copied().unwrap_or_default();
            since.tally.wait = (since.tally.wait + sum).saturating_sub(sum_before);
            since.tally.wait_max = since.tally.wait_max.max(longest);
            if let Some(old) = old.get(&one.number) {
                let places: HashMap<u32, _> =
                    old.waiters.iter().map(|place| (place.stack, place)).collect();
                for place in &mut since.waiters {
                    if let Some(old) = places.get(&place.stack) {
                        place.waits = place.waits.saturating_sub(old.waits);
                        place.wait = place.wait.saturating_sub(old.wait);
                    }
                }
                since.waiters.retain(|place| place.waits > 0);
            }
            since
        });
        let is_told = |one: &Recorded| {
            one.tally.is_used()
                || one.tally.wait > 0
                || ticks.contains_key(&one.number)
                || !one.waiters.is_empty()
        };
        let mut since =
            ProcessStats { recorded: recorded.filter(is_told).collect(), ..self.without_locks() };
        since.noted = self.stats.noted.since(&before.stats.noted);
        since
    }

    fn without_locks(&self) -> ProcessStats {
        let stats = &self.stats;
        ProcessStats {
            lock: stats.lock.clone(),
            started_as: stats.started_as.clone(),
            modules: Arc::clone(&stats.modules),
            recorded: Vec::new(),
            stacks: Arc::clone(&stats.stacks),
            noted: Default::default(),
            ..*stats
        }
    }

    /// By record: the sum, and the longest.
    fn ticks_under_way(&self) -> HashMap<u32, (u64, u64)> {
        let mut ticks: HashMap<u32, (u64, u64)> = HashMap::new();
        for one in &self.waiting {
            let (sum, longest) = ticks.entry(one.record).or_default();
            (*sum, *longest) = (*sum + one.ticks, (*longest).max(one.ticks));
        }
        ticks
    }
}

fn with_tally(
    one: &Recorded,
    tally: impl FnOnce(
        &crate::analyze::process::decode::Tally,
    ) -> crate::analyze::process::decode::Tally,
) -> Recorded {
    Recorded { tally: tally(&one.tally), waiters: one.waiters.clone(), ..*one }
}

fn under_way(mapping: &Mapping, now: u64) -> Vec<UnderWay> {
    // Relaxed, all: ordered by the Acquire of each lock's waits, which were read before.
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    let waiting = mapping.slabs[..used.min(SLABS)].iter().filter_map(|slab| {
        // Relaxed: as above.
        let record = slab.waiting.load(Ordering::Relaxed);
        let ticks = now.saturating_sub(slab.waiting_since.load(Ordering::Relaxed)); // Relaxed: as above
        let thread = slab.thread.load(Ordering::Relaxed); // Relaxed: as above
        (record != 0).then_some(UnderWay { record, thread, ticks })
    });
    waiting.collect()
}

/// The time that a picture is of.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// How long it is, in seconds.
    pub seconds: f64,
    /// CPU time of all its processes outside of the kernel, in seconds.
    pub user: f64,
    /// CPU time of all its processes in the kernel, in seconds.
    pub kernel: f64,
}

/// The activity of a program's locks in a span of time.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// How long the span is, in seconds.
    pub seconds: f64,
    /// Where the time of all threads went.
    pub cpu: Cpu,
    /// The locks, most waited first.
    pub locks: Vec<LiveLock>,
    /// As in a profile.
    pub stacks: Vec<Stack>,
    /// As in a profile, but without the CPU time, which is not read.
    pub threads: Vec<Thread>,
    /// As in a profile.
    pub blocking: Vec<Blocking>,
}

/// A lock, and its waiters.
#[derive(Clone, Debug)]
pub struct LiveLock {
    /// What tells it from others.
    pub id: LockId,
    /// What it did.
    pub lock: Lock,
    /// The threads that wait for it at the end of the span, longest first.
    pub waiting: Vec<Waiter>,
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// For how long until now.
    pub ns: u64,
}

/// Makes pictures of one program.
#[derive(Default)]
pub struct Live {
    symbols: Symbols,
}

impl Live {
    /// The activity of the processes from their start until these snapshots.
    pub fn until_now(&mut self, snapshots: &[&Snapshot], span: Span, rate: &Rate) -> Picture {
        let stats: Vec<_> = snapshots.iter().map(|snapshot| snapshot.until_now()).collect();
        self.picture(&stats, snapshots, span, rate)
    }

    /// The activity between two snapshots of each process. A process that has started meanwhile has
    /// only the later one.
    pub fn between(
        &mut self,
        snapshots: &[(Option<&Snapshot>, &Snapshot)],
        span: Span,
        rate: &Rate,
    ) -> Picture {
        let since = |(before, now): &(Option<&Snapshot>, &Snapshot)| match before {
            Some(before) => now.since(before),
            None => now.until_now(),
        };
        let stats: Vec<_> = snapshots.iter().map(since).collect();
        let snapshots: Vec<_> = snapshots.iter().map(|(_, now)| *now).collect();
        self.picture(&stats, &snapshots, span, rate)
    }

    fn picture(
        &mut self,
        stats: &[ProcessStats],
        snapshots: &[&Snapshot],
        span: Span,
        rate: &Rate,
    ) -> Picture {
        let symbols = &mut self.symbols;
        let mut sum = Groups::default();
        let mut identities = HashMap::new();
        for (place, one) in stats.iter().enumerate() {
            sum.add(Groups::of(one, symbols, |record, identity| {
                identities.insert((place, record), identity);
            }));
        }
        let rows = sum.rows(identities);
        let locks = sum.locks(rate, symbols);
        let mut waiting: HashMap<usize, Vec<Waiter>> = HashMap::new();
        for (place, snapshot) in snapshots.iter().enumerate() {
            for one in &snapshot.waiting {
                if let Some(row) = rows.get(&(place, one.record)) {
                    let ns = rate.ns(one.ticks).round() as u64;
                    let waiter = Waiter { pid: snapshot.stats.pid, tid: one.thread, ns };
                    waiting.entry(*row).or_default().push(waiter);
                }
            }
        }
        waiting.values_mut().for_each(|all| {
            all.sort_by_key(|one| (std::cmp::Reverse(one.ns), one.pid, one.tid));
        });
        let (spin, lock_wait) = sum.waits(rate);
        let blocking = blocking::of(stats, &rows, &locks, symbols);
        let named = sum.identities().into_iter().zip(locks).enumerate();
        Picture {
            seconds: span.seconds,
            cpu: Cpu::of(span.user, span.kernel, spin, spin + lock_wait),
            locks: named
                .map(|(row, (identity, lock))| LiveLock {
                    id: LockId(identity),
                    lock,
                    waiting: waiting.remove(&row).unwrap_or_default(),
                })
                .collect(),
            stacks: sum.stacks(rate, symbols),
            threads: threads::of(stats, &SeenThreads::new(), &rows, rate),
            blocking,
        }
    }
}
