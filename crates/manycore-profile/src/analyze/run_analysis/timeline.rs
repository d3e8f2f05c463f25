//! Events over time: samples of the processes while they run, and the changes between two samples.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use crate::analyze::futex::{Count, Futexes};
use crate::analyze::groups::overflow_processes::Numbers;
use crate::analyze::process::decode::Recorded;
use crate::analyze::{names::modules::Key, process::ProcessStats};
use crate::clock::Rate;
use crate::profile::{Cpu, Interval, Timeline, Waited};
use manycore_stats::{Mapping, RECORDS, SLABS};

use crate::analyze::groups::{FUTEXES, OTHERS, Rows};
use crate::analyze::process::decode::{get, get32};

/// With more intervals than this, two become one.
const INTERVALS_MAX: usize = 240;
/// Each sample reports this many locks of a process, those with the longest waits; a later sample
/// reports the others.
const CHANGES_MAX: usize = 512;
/// This many locks are kept of an interval.
const LOCKS_KEPT: usize = 32;

/// Builds the timeline of a run from samples.
#[derive(Debug)]
pub struct TimelineBuilder {
    /// Length of an interval, in seconds.
    interval: f64,
    slots: Vec<Slot>,
    /// The time of the last sample, in seconds from the start.
    at: f64,
    /// CPU time until then, in seconds: outside of the kernel, and in the kernel.
    cpu: (f64, f64),
    /// What was told of each process' locks until then.
    told: HashMap<Key, HashMap<u32, Counts>>,
    /// The time at which futexes were last sampled, and the totals of each place until then.
    futexes_at: f64,
    futexes_told: HashMap<u32, Counts>,
}

/// What happened in an interval.
#[derive(Clone, Debug, Default)]
struct Slot {
    user: f64,
    kernel: f64,
    waits: HashMap<(Key, u32), Counts>,
    /// The locks of the processes that are kept as one, by number. The CPU time covers all waits.
    others: HashMap<u32, Counts>,
    /// The futexes, by the place's number. The wait is in nanoseconds.
    futexes: HashMap<u32, Counts>,
}

/// The counts of a lock; the wait is in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    contended: u64,
    wait: u64,
    /// The spinning in the waits whose CPU time was measured.
    spin_ns: u64,
}

impl Counts {
    fn since(&self, before: &Self) -> Self {
        Self {
            contended: self.contended.saturating_sub(before.contended),
            wait: self.wait.saturating_sub(before.wait),
            spin_ns: self.spin_ns.saturating_sub(before.spin_ns),
        }
    }

    fn add(&mut self, more: &Self) {
        self.contended += more.contended;
        self.wait += more.wait;
        self.spin_ns += more.spin_ns;
    }

    /// The part of the counts until a share of the time, so that the parts add up to the whole.
    fn until(&self, share: f64) -> Self {
        let part = |count: u64| (count as f64 * share).round() as u64;
        Self { contended: part(self.contended), wait: part(self.wait), spin_ns: part(self.spin_ns) }
    }
}

impl TimelineBuilder {
    /// Nothing seen, of intervals of this many seconds.
    pub fn new(interval: f64) -> Self {
        Self {
            interval,
            slots: vec![Slot::default()],
            at: 0.0,
            cpu: (0.0, 0.0),
            told: HashMap::new(),
            futexes_at: 0.0,
            futexes_told: HashMap::new(),
        }
    }

    /// Notes the changes until now, `at` seconds from the start. `user` and `kernel` are the CPU
    /// time of all processes until then, in seconds.
    pub fn sample<'a>(
        &mut self,
        at: f64,
        (user, kernel): (f64, f64),
        now: u64,
        processes: impl IntoIterator<Item = (Key, &'a Mapping)>,
    ) {
        let parts = self.parts_until(at);
        for (key, mapping) in processes {
            self.process(key, counts(mapping, now), CHANGES_MAX, &parts);
        }
        self.cpu_time((user, kernel), &parts);
    }

    /// Notes the changes of futexes until now, `at` seconds from the start: the total counts of
    /// each place.
    pub fn look_at_futexes(&mut self, at: f64, counts: impl IntoIterator<Item = Count>) {
        self.futexes(at, counts, CHANGES_MAX);
    }

    /// What there is when all is over.
    pub fn end(&mut self, at: f64, cpu: (f64, f64), stats: &[ProcessStats], futexes: &Futexes) {
        let parts = self.parts_until(at);
        for one in stats {
            self.process(one.key(), counts_at_end(one), usize::MAX, &parts);
        }
        self.cpu_time(cpu, &parts);
        self.futexes(at, futexes.counts(), usize::MAX);
    }

    /// A process has ended, and becomes one of many: its records are locks with these numbers.
    pub fn sum_up(&mut self, one: &ProcessStats, numbers: &Numbers) {
        let parts = self.parts_until(self.at);
        self.process(one.key(), counts_at_end(one), usize::MAX, &parts);
        let Some(told) = self.told.remove(&one.key()) else { return };
        for record in told.into_keys() {
            let each = one.recorded.iter().find(|lock| lock.number == record).map(stands_for);
            for slot in &mut self.slots {
                let Some(mut counts) = slot.waits.remove(&(one.key(), record)) else { continue };
                counts.spin_ns = (counts.spin_ns as f64 * each.unwrap_or(1.0)).round() as u64;
                if let Some(number) = numbers.get(&record) {
                    slot.others.entry(*number).or_default().add(&counts);
                }
            }
        }
    }

    /// The intervals from the last sample until now, each with the share of that time at its end.
    fn parts_until(&mut self, at: f64) -> Parts {
        let from = self.at;
        self.at = at.max(from);
        self.parts(from, self.at)
    }

    fn parts(&mut self, from: f64, to: f64) -> Parts {
        while (to / self.interval) as usize >= INTERVALS_MAX {
            self.merge();
        }
        let slot = |time: f64| (time / self.interval) as usize;
        let last = slot(to);
        self.slots.resize(self.slots.len().max(last + 1), Slot::default());
        let end = |slot: usize| (slot + 1) as f64 * self.interval;
        let share = |slot: usize| {
            if slot == last { 1.0 } else { (end(slot) - from) / (to - from) }
        };
        (slot(from)..=last).map(|slot| (slot, share(slot))).collect()
    }

    /// Makes one interval of two.
    fn merge(&mut self) {
        let mut merged: Vec<Slot> = Vec::new();
        for pair in self.slots.chunks(2) {
            let mut sum = pair[0].clone();
            if let Some(second) = pair.get(1) {
                sum.user += second.user;
                sum.kernel += second.kernel;
                for (lock, counts) in &second.waits {
                    sum.waits.entry(*lock).or_default().add(counts);
                }
                for (lock, counts) in &second.others {
                    sum.others.entry(*lock).or_default().add(counts);
                }
                for (place, counts) in &second.futexes {
                    sum.futexes.entry(*place).or_default().add(counts);
                }
            }
            merged.push(sum);
        }
        self.slots = merged;
        self.interval *= 2.0;
    }

    fn process(&mut self, key: Key, counts: Vec<(u32, Counts)>, most: usize, parts: &Parts) {
        let told = self.told.entry(key).or_default();
        tell(told, counts, most, parts, |slot, record, part| {
            self.slots[slot].waits.entry((key, record)).or_default().add(&part);
        });
    }

    fn futexes(&mut self, at: f64, counts: impl IntoIterator<Item = Count>, most: usize) {
        let (from, to) = (self.futexes_at, at.max(self.futexes_at));
        self.futexes_at = to;
        let parts = self.parts(from, to);
        let counts = counts.into_iter().map(|Count { number, waits, total_ns }| {
            (number, Counts { contended: waits, wait: total_ns, spin_ns: 0 })
        });
        tell(&mut self.futexes_told, counts.collect(), most, &parts, |slot, place, part| {
            self.slots[slot].futexes.entry(place).or_default().add(&part);
        });
    }

    fn cpu_time(&mut self, (user, kernel): (f64, f64), parts: &Parts) {
        // A process whose time is just being passed to its parent may be missed: then it counts at
        // the next sample.
        let more = ((user - self.cpu.0).max(0.0), (kernel - self.cpu.1).max(0.0));
        self.cpu = (self.cpu.0 + more.0, self.cpu.1 + more.1);
        let mut before = 0.0;
        for (slot, share) in parts {
            self.slots[*slot].user += more.0 * (share - before);
            self.slots[*slot].kernel += more.1 * (share - before);
            before = *share;
        }
    }

    /// The timeline, with the locks' indices in the profile.
    pub(crate) fn timeline(&self, stats: &[ProcessStats], rows: &Rows, rate: &Rate) -> Timeline {
        let process_of: HashMap<Key, usize> =
            stats.iter().enumerate().map(|(process, one)| (one.key(), process)).collect();
        // The number of waits that one wait with measured CPU time represents: known at the end of
        // the run.
        let stands_for: HashMap<(usize, u32), f64> = stats
            .iter()
            .enumerate()
            .flat_map(|(process, one)| one.recorded.iter().map(move |lock| (process, lock)))
            .map(|(process, lock)| ((process, lock.number), stands_for(lock)))
            .collect();
        let interval = |slot: &Slot| {
            let mut waits: HashMap<usize, Counts> = HashMap::new();
            let mut spin_ns = 0.0;
            for ((key, record), counts) in &slot.waits {
                let Some(process) = process_of.get(key) else { continue };
                let Some(lock) = rows.get(&(*process, *record)) else { continue };
                waits.entry(*lock).or_default().add(counts);
                let each = stands_for.get(&(*process, *record)).copied().unwrap_or(1.0);
                spin_ns += counts.spin_ns as f64 * each;
            }
            for (number, counts) in &slot.others {
                let Some(lock) = rows.get(&(OTHERS, *number)) else { continue };
                waits.entry(*lock).or_default().add(counts);
                spin_ns += counts.spin_ns as f64;
            }
            for (place, counts) in &slot.futexes {
                // None of conditions, nor of what the library waits for.
                let Some(lock) = rows.get(&(FUTEXES, *place)) else { continue };
                let wait = rate.ticks(counts.wait);
                waits.entry(*lock).or_default().add(&Counts { wait, ..*counts });
            }
            // A wait's CPU time may be reported with the sample after the one that counted the
            // wait.
            waits.retain(|_, counts| counts.contended > 0 || counts.wait > 0);
            let ns = |ticks: u64| rate.ns(ticks).round() as u64;
            let wait = waits.values().map(|counts| rate.ns(counts.wait)).sum::<f64>() / 1e9;
            let waited = waits.into_iter().map(|(lock, counts)| Waited {
                lock,
                contended: counts.contended,
                wait_ns: ns(counts.wait),
            });
            let mut waits: Vec<_> = waited.collect();
            waits.sort_by(|a, b| (b.wait_ns, a.lock).cmp(&(a.wait_ns, b.lock)));
            waits.truncate(LOCKS_KEPT);
            Interval { cpu: Cpu::of(slot.user, slot.kernel, spin_ns / 1e9, wait), waits }
        };
        Timeline { interval: self.interval, intervals: self.slots.iter().map(interval).collect() }
    }
}

/// Intervals, each with the share of some time at its end.
type Parts = Vec<(usize, f64)>;

/// Divides the changes since the last call among the intervals: for this many locks, those that
/// were waited for most.
fn tell(
    told: &mut HashMap<u32, Counts>,
    counts: Vec<(u32, Counts)>,
    most: usize,
    parts: &Parts,
    mut add: impl FnMut(usize, u32, Counts),
) {
    let changed = counts.into_iter().filter_map(|(record, now)| {
        let before = told.get(&record).copied().unwrap_or_default();
        let change = now.since(&before);
        (change != Counts::default()).then_some((record, change))
    });
    let mut changed: Vec<_> = changed.collect();
    changed.sort_by_key(|(record, change)| (u64::MAX - change.wait, *record));
    changed.truncate(most);
    for (record, change) in changed {
        told.entry(record).or_default().add(&change);
        let mut before = Counts::default();
        for (slot, share) in parts {
            let until = change.until(*share);
            let part = until.since(&before);
            before = until;
            if part != Counts::default() {
                add(*slot, record, part);
            }
        }
    }
}

/// The number of waits for which one with measured CPU time stands.
fn stands_for(lock: &Recorded) -> f64 {
    lock.tally.contended as f64 / lock.tally.sampled.max(1) as f64
}

/// What a process has counted that has ended.
fn counts_at_end(one: &ProcessStats) -> Vec<(u32, Counts)> {
    let counts = one.recorded.iter().map(|Recorded { number, tally, .. }| {
        let counts = Counts {
            contended: tally.attempts_that_waited(),
            wait: tally.wait,
            spin_ns: tally.spin_ns,
        };
        (*number, counts)
    });
    counts.collect()
}

/// The counts of a process, including the waits that are under way.
fn counts(mapping: &Mapping, now: u64) -> Vec<(u32, Counts)> {
    let header = &mapping.header;
    let used = (get32(&header.records) as usize).min(RECORDS);
    let mut counts: Vec<(u32, Counts)> = mapping.records[..used]
        .iter()
        .enumerate()
        .map(|(number, record)| {
            let counts = Counts {
                // Acquire: partner of the process' Release. A wait that is counted is not under way
                // below.
                wait: record.wait.load(Ordering::Acquire),
                contended: get(&record.contended).saturating_sub(get(&record.hand_overs.resumed)),
                spin_ns: get(&record.spin_ns),
            };
            // Conditions as well: which of them are locks is known only at the end of the run.
            (number as u32, counts)
        })
        .collect();
    for slab in &mapping.slabs[..(get32(&header.slabs) as usize).min(SLABS)] {
        let (record, since) = (get32(&slab.waiting), get(&slab.waiting_since));
        if record != 0
            && let Some((_, counts)) = counts.get_mut(record as usize)
        {
            counts.wait += now.saturating_sub(since);
        }
    }
    counts
}
