//! Locks that are shown as one: in one process, and over all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use self::estimate::Sample;
use self::name::{Identity, Name};
use crate::analyze::names::symbols::{StackId, Symbols};
use crate::analyze::process::ProcessStats;
use crate::analyze::process::decode::Tally;
use crate::clock::Rate;
use crate::profile::{Condition, Held, Lock, Origin, Site, Stack, Times};
use manycore_stats::{Histogram, Kind};

mod estimate;
mod futex;
pub(super) mod name;
pub mod overflow_processes;

/// The most waiting places that are shown for a lock.
const SITES_MAX: usize = 4;
/// The most calls of a waiting place's stack that are listed there; `stacks` has all of them.
const SITE_FRAMES_MAX: usize = 8;
/// The most stacks of waiting threads that are listed. A picture has room for far fewer.
const STACKS_MAX: usize = 1_000;

/// The index of each lock in the profile's list, by process (its index in the list of statistics)
/// and record.
pub(in crate::analyze) type Rows = HashMap<(usize, u32), usize>;

/// The process in [`Rows`] that stands for all processes that are not in the list. The numbers in
/// its records are those of their locks.
pub(in crate::analyze) const OTHERS: usize = usize::MAX;
/// The process in [`Rows`] that stands for the kernel's view of futexes. Its records are the
/// numbers of the places where threads waited.
pub(in crate::analyze) const FUTEXES: usize = usize::MAX - 1;

/// Objects that are shown as one, and their common properties.
#[derive(Default)]
pub struct Groups {
    groups: HashMap<Identity, Group>,
}

struct Group {
    name: Name,
    /// The calls that created the first of them.
    stack: StackId,
    kind: Kind,
    objects: u64,
    tally: Tally,
    /// The longest total wait of a single object, in ticks.
    hottest: u64,
    waiters: HashMap<WaitSite, Waited>,
}

/// A place where threads waited: its stack. If the stack is empty because the place is in no file,
/// the address distinguishes it.
type WaitSite = (StackId, u64);

/// Sampled waits, and their time in ticks.
#[derive(Clone, Copy, Default)]
struct Waited {
    waits: u64,
    wait: u64,
}

impl Waited {
    fn add(&mut self, more: Self) {
        self.waits += more.waits;
        self.wait += more.wait;
    }
}

/// The stacks of a process, looked up when they are first needed.
struct Stacks<'a> {
    stats: &'a ProcessStats,
    known: HashMap<u32, StackId>,
}

impl Stacks<'_> {
    /// A stack by its number in the process, and its innermost address.
    fn get(&mut self, number: u32, symbols: &mut Symbols) -> (StackId, u64) {
        let calls = self.stats.stack(number);
        let stack =
            *self.known.entry(number).or_insert_with(|| symbols.stack(calls, &self.stats.modules));
        (stack, calls.addresses.first().copied().unwrap_or(0))
    }
}

impl Groups {
    /// The locks of a process. Calls `note` with the row for each record.
    pub fn of(
        stats: &ProcessStats,
        symbols: &mut Symbols,
        mut note: impl FnMut(u32, Identity),
    ) -> Self {
        let mut groups = Self::default();
        let mut stacks = Stacks { stats, known: HashMap::new() };
        for recorded in &stats.recorded {
            let (stack, caller) = stacks.get(recorded.stack, symbols);
            let (identity, name) = name::of(recorded, stack, caller, &stats.modules, symbols);
            note(recorded.number, identity);
            let mut tally = Tally::default();
            tally.add(&recorded.tally);
            let objects =
                if recorded.is_rest { stats.unrecorded } else { recorded.objects.max(1).into() };
            let hottest = if recorded.is_crowd { 0 } else { tally.wait };
            let mut waiters: HashMap<WaitSite, Waited> = HashMap::new();
            for place in &recorded.waiters {
                let (stack, caller) = stacks.get(place.stack, symbols);
                let caller = if symbols.is_empty(stack) { caller } else { 0 };
                let waited = Waited { waits: place.waits, wait: place.wait };
                waiters.entry((stack, caller)).or_default().add(waited);
            }
            let kind = recorded.kind;
            groups.insert(identity, Group { name, stack, kind, objects, tally, hottest, waiters });
        }
        groups
    }

    /// Adds another process' locks.
    pub fn add(&mut self, other: Self) {
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
                for (place, more) in group.waiters {
                    sum.waiters.entry(place).or_default().add(more);
                }
            }
        }
    }

    /// Sorted by waits, then by use, and then by name, so the output is always the same.
    fn sorted(&self, wanted: impl Fn(Kind) -> bool) -> Vec<(&Identity, &Group)> {
        let all = self.groups.iter();
        let mut sorted: Vec<_> = all.filter(|(_, group)| wanted(group.kind)).collect();
        let rank = |group: &Group| (group.tally.wait, group.tally.acquired());
        sorted.sort_by(|(_, a), (_, b)| {
            rank(b).cmp(&rank(a)).then_with(|| a.name.full.cmp(&b.name.full))
        });
        sorted
    }

    fn sorted_locks(&self) -> Vec<&Group> {
        self.sorted(|kind| kind != Kind::Cond).into_iter().map(|(_, group)| group).collect()
    }

    /// The rows in [`locks`](Self::locks) of these records, by process and number.
    pub fn rows(&self, records: HashMap<(usize, u32), Identity>) -> Rows {
        let sorted = self.sorted(|kind| kind != Kind::Cond);
        let places: HashMap<&Identity, usize> =
            sorted.iter().enumerate().map(|(place, (identity, _))| (*identity, place)).collect();
        let row = |(record, identity)| Some((record, *places.get(&identity)?));
        records.into_iter().filter_map(row).collect()
    }

    /// The keys that distinguish locks, in the order of [`locks`](Self::locks).
    pub fn identities(&self) -> Vec<Identity> {
        self.sorted(|kind| kind != Kind::Cond).into_iter().map(|(identity, _)| *identity).collect()
    }

    /// The locks, most waited first.
    pub fn locks(&self, rate: &Rate, symbols: &Symbols) -> Vec<Lock> {
        self.sorted_locks().iter().map(|group| group.lock(rate, symbols)).collect()
    }

    /// The condition variables, most waited first.
    pub fn conditions(&self, rate: &Rate, symbols: &Symbols) -> Vec<Condition> {
        let sorted = self.sorted(|kind| kind == Kind::Cond);
        sorted.iter().map(|(_, group)| group.condition(rate, symbols)).collect()
    }

    /// The stacks in which threads waited for locks, the longest waits first: as many as there is
    /// room for, and then the rest of each lock.
    pub fn stacks(&self, rate: &Rate, symbols: &Symbols) -> Vec<Stack> {
        let mut stacks = Vec::new();
        for (lock, group) in self.sorted_locks().into_iter().enumerate() {
            let sampled: u64 = group.waiters.values().map(|waited| waited.wait).sum();
            let total = rate.ns(group.tally.wait);
            stacks.extend(group.waiters.iter().map(|(place, waited)| {
                let wait_ns = (total * share(waited.wait, sampled)).round() as u64;
                let stack = Stack { lock, waits: waited.waits, wait_ns, frames: Vec::new() };
                (place, stack)
            }));
        }
        stacks
            .sort_by_key(|(place, stack)| (std::cmp::Reverse(stack.wait_ns), stack.lock, **place));
        let rest = stacks.split_off(stacks.len().min(STACKS_MAX));
        let mut stacks: Vec<_> = stacks
            .into_iter()
            .map(|((place, _), stack)| Stack { frames: symbols.frames(*place), ..stack })
            .collect();
        stacks.extend(summed_by_lock(rest.into_iter().map(|(_, stack)| stack)));
        stacks
    }

    /// The time that threads waited for locks, in seconds: on the CPU, and off it.
    pub fn waits(&self, rate: &Rate) -> (f64, f64) {
        let locks = || self.groups.values().filter(|group| group.kind != Kind::Cond);
        // From zero: the sum of nothing is minus zero.
        let spin = locks().map(|group| group.tally.all_spin_ns()).fold(0.0, |a, b| a + b) / 1e9;
        let all = locks().map(|group| rate.ns(group.tally.wait)).sum::<f64>() / 1e9;
        (spin, (all - spin).max(0.0))
    }
}

/// One without calls for each lock.
fn summed_by_lock(stacks: impl Iterator<Item = Stack>) -> Vec<Stack> {
    let mut sums: Vec<Stack> = Vec::new();
    let mut places = HashMap::new();
    for stack in stacks {
        let at = *places.entry(stack.lock).or_insert(sums.len());
        match sums.get_mut(at) {
            None => sums.push(stack),
            Some(sum) => {
                sum.waits += stack.waits;
                sum.wait_ns += stack.wait_ns;
            }
        }
    }
    sums
}

/// Stacks that tell the same, as one.
struct Called {
    name: Name,
    waited: Waited,
    /// The one of them that was waited in longest.
    longest: (u64, StackId),
}

impl Group {
    /// Where threads waited most.
    fn waits_in(&self, symbols: &Symbols) -> Vec<Site> {
        let mut called: HashMap<Identity, Called> = HashMap::new();
        for ((stack, caller), waited) in &self.waiters {
            let (identity, name) =
                name::of_calls(*stack, *caller, self.kind, Origin::FirstUse, symbols);
            let one = Called { name, waited: Waited::default(), longest: (0, *stack) };
            let sum = called.entry(identity).or_insert(one);
            sum.waited.add(*waited);
            sum.longest = sum.longest.max((waited.wait, *stack));
        }
        let mut sorted: Vec<_> = called.into_values().collect();
        sorted.sort_by(|a, b| {
            b.waited.wait.cmp(&a.waited.wait).then_with(|| a.name.full.cmp(&b.name.full))
        });
        let all = sorted.iter().map(|called| called.waited.wait).sum();
        let site = |Called { name, waited, longest }: Called| Site {
            name: name.full,
            short: name.short,
            waits: waited.waits,
            share: share(waited.wait, all),
            frames: symbols.frames(longest.1).into_iter().take(SITE_FRAMES_MAX).collect(),
        };
        sorted.into_iter().take(SITES_MAX).map(site).collect()
    }

    fn lock(&self, rate: &Rate, symbols: &Symbols) -> Lock {
        let Self { name, tally, .. } = self;
        let attempts = tally.acquired() + tally.timeouts;
        // Without a count of acquisitions, their share is not known.
        let attempts = if self.kind == Kind::Made { 0 } else { attempts };
        Lock {
            name: name.full.clone(),
            short: name.short.clone(),
            origin: name.origin,
            module: name.module.clone(),
            kind: crate::profile::kind_name(self.kind).to_owned(),
            objects: self.objects,
            acquired: tally.acquired(),
            exclusive: tally.exclusive,
            shared: tally.shared,
            contended: tally.attempts_that_waited(),
            contended_shared: tally.contended_shared,
            contended_share: share(tally.contended, attempts),
            timeouts: tally.timeouts.saturating_sub(tally.resumed),
            handoffs: tally.handoffs,
            wait: self.wait(rate),
            hold: self.hold(rate),
            held: self.held(rate),
            hottest_share: if tally.wait == 0 { 1.0 } else { share(self.hottest, tally.wait) },
            frames: symbols.frames(self.stack),
            waits_in: self.waits_in(symbols),
        }
    }

    fn condition(&self, rate: &Rate, symbols: &Symbols) -> Condition {
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
            frames: symbols.frames(self.stack),
            waits_in: self.waits_in(symbols),
        }
    }

    fn wait(&self, rate: &Rate) -> Times {
        let Tally { contended, wait, wait_ended, wait_max, distributions, .. } = &self.tally;
        let distribution = distributions.as_deref().map(|d| &d.wait);
        let all = times(*contended, *wait, *wait_max, distribution, rate);
        if self.kind == Kind::Made && self.tally.resumed > 0 {
            // Each was measured in pieces.
            let count = self.tally.attempts_that_waited();
            let mean_ns = mean(count, *wait_ended, rate);
            return Times { count, mean_ns, p99_ns: None, max_ns: None, ..all };
        }
        // A wait that is under way is not counted yet, and not included in the mean.
        Times { mean_ns: mean(*contended, *wait_ended, rate), ..all }
    }

    fn hold(&self, rate: &Rate) -> Times {
        let Tally { holds, hold, hold_max, distributions, .. } = &self.tally;
        times(*holds, *hold, *hold_max, distributions.as_deref().map(|d| &d.hold), rate)
    }
}

impl Group {
    /// The holds of a lock whose acquisitions are counted.
    fn held(&self, rate: &Rate) -> Option<Held> {
        let Tally { holds, hold, hold_max, distributions, .. } = &self.tally;
        if matches!(self.kind, Kind::Made | Kind::Futex) {
            return None;
        }
        let hold_of = distributions.as_deref().map(|d| &d.hold);
        let sample = Sample::of(*holds, *hold as f64, *hold_max as f64, hold_of);
        let in_ns = |ticks: u64| rate.ns(ticks).round() as u64;
        sample.sum_of(self.tally.acquired()).map(|held| Held {
            total_ns: in_ns(held.total_ns),
            low_ns: in_ns(held.low_ns),
            high_ns: in_ns(held.high_ns),
        })
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
        mean_ns: mean(count, total, rate),
        // A bucket's middle can lie beyond the longest.
        p99_ns: distribution.and_then(|d| d.quantile(0.99)).map(|ticks| ns(ticks.min(longest))),
        max_ns: known(ns(longest)).filter(|_| longest > 0 || total == 0),
    }
}

/// In nanoseconds, of a total in ticks.
fn mean(count: u64, total: u64, rate: &Rate) -> Option<u64> {
    (count > 0).then(|| (rate.ns(total) / count as f64).round() as u64)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}
