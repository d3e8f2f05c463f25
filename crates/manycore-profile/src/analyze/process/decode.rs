//! The counts of each lock: the record and every thread's counters, added up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::analyze::names::modules::Epoch;
use manycore_stats::{
    CROWD, Distributions, HISTOGRAMS, Histogram, INITIALISED, Kind, Mapping, RECORDS, Record,
    SITES, SLABS, STACKS, Slot, Stack,
};

/// The counts of a lock or condition variable, or of several that are shown as one. Times are in
/// ticks.
#[derive(Debug, Default)]
pub struct Tally {
    /// Acquisitions for writing, or of a lock that does not distinguish reading and writing.
    pub exclusive: u64,
    /// Acquisitions for reading.
    pub shared: u64,
    /// Acquisitions on another CPU than the one before.
    pub handoffs: u64,
    /// Acquisitions that had to wait; of a condition variable, waits.
    pub contended: u64,
    /// Those of them for reading.
    pub contended_shared: u64,
    /// Waits that ended by their deadline.
    pub timeouts: u64,
    /// Time waited.
    pub wait: u64,
    /// The duration of the counted waits: of each wait that has ended, the whole duration,
    /// including the part before an interval.
    pub wait_ended: u64,
    /// The longest wait; 0 where that is not known.
    pub wait_max: u64,
    /// Waits whose CPU time was measured.
    pub sampled: u64,
    /// That CPU time, in nanoseconds.
    pub spin_ns: u64,
    /// Holds that were measured.
    pub holds: u64,
    /// Their time.
    pub hold: u64,
    /// The longest of them; 0 if that is not known.
    pub hold_max: u64,
    /// For a condition variable: how often a let-in thread woke others when it came back to the
    /// mutex.
    pub handed: u64,
    /// How often a let-in thread came back to wait again.
    pub returned: u64,
    /// The number of hand-overs by threads that had been let in by a thread that had waited in the
    /// same place.
    pub alike: u64,
    /// The number of hand-overs by threads that had been let in by a thread that had waited in
    /// another place.
    pub unlike: u64,
    /// Waits that went on with another one.
    pub resumed: u64,
    /// The distributions of waits and holds, as far as they are known for this lock alone.
    pub distributions: Option<Box<Distributed>>,
}

/// Distributions to which others can be added.
#[derive(Debug, Default)]
pub struct Distributed {
    /// Waits.
    pub wait: Histogram,
    /// Sampled holds.
    pub hold: Histogram,
}

/// A record that was used, with its tally.
#[derive(Debug)]
pub struct Recorded {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub kind: Kind,
    /// Whether it is the record that represents all locks without a record of their own.
    pub is_rest: bool,
    /// How many objects have had the record.
    pub objects: u32,
    /// The latest object's address; 0 if several existed at a time.
    pub address: u64,
    /// Which files it was among.
    pub epoch: Epoch,
    /// Whether it was several objects' at a time.
    pub is_crowd: bool,
    /// The number of the stack by which it came to be.
    pub stack: u32,
    /// Whether that is the stack of its initialisation, and not of its first use.
    pub is_initialised: bool,
    /// The counts.
    pub tally: Tally,
    /// The places where threads waited for it, and for all others of its class.
    pub waiters: Vec<Waiters>,
}

/// A place where threads waited, from sampled waits.
#[derive(Clone, Debug)]
pub struct Waiters {
    /// The number of the stack.
    pub stack: u32,
    /// Sampled waits.
    pub waits: u64,
    /// Their time, in ticks.
    pub wait: u64,
}

/// A running process moves counts from its threads' counters to the records. If it does so during a
/// reading, that is repeated this many times at most.
const READINGS_MAX: usize = 4;

/// Reads everything that was counted in a process.
pub fn read(mapping: &Mapping) -> Vec<Recorded> {
    settled(|| sum_slabs(mapping), |in_slabs| read_records(mapping, in_slabs))
}

/// Reads sums together with those of the slabs, which must not shrink meanwhile: otherwise moved
/// counts would be counted twice.
fn settled<R>(mut sums: impl FnMut() -> Sums, read: impl Fn(&Sums) -> R) -> R {
    let mut before = sums();
    for _ in 1..READINGS_MAX {
        let found = read(&before);
        let after = sums();
        let has_shrunk = |(record, sum): (&u32, &InSlabs)| {
            after.get(record).is_none_or(|later| later.is_less_than(sum))
        };
        if !before.iter().any(has_shrunk) {
            return found;
        }
        before = after;
    }
    read(&before)
}

fn read_records(mapping: &Mapping, in_slabs: &Sums) -> Vec<Recorded> {
    let header = &mapping.header;
    let mut waiters = waiters(mapping);
    // A process that is killed at any point leaves counts within the arrays; a damaged file may
    // not.
    let records = (get32(&header.records) as usize).min(RECORDS);
    let distributions = (get32(&header.distributions) as usize).min(HISTOGRAMS);
    let usable = &mapping.distributions[..distributions];
    let used = mapping.records[..records].iter().enumerate().filter_map(|(number, record)| {
        let tally = Tally::of(record, in_slabs.get(&(number as u32)), usable);
        let waiters = waiters.remove(&(number as u32)).unwrap_or_default();
        let (live, stack) = (get32(&record.live), get32(&record.stack));
        // Acquire: partner of the Release by which the process publishes the filled-in record.
        let kind = Kind::from_number(record.kind.load(Ordering::Acquire));
        let is_used = tally.is_used() || !waiters.is_empty();
        (is_used && (number == 0 || kind != Kind::None)).then(|| Recorded {
            number: number as u32,
            kind,
            is_rest: number == 0,
            objects: get32(&record.objects),
            address: get(&record.address),
            epoch: get32(&record.epoch),
            is_crowd: live & CROWD != 0,
            stack: stack & !INITIALISED,
            is_initialised: stack & INITIALISED != 0,
            tally,
            waiters,
        })
    });
    used.collect()
}

/// The places where threads waited, by the number of the first record of the lock's class.
fn waiters(mapping: &Mapping) -> HashMap<u32, Vec<Waiters>> {
    // Acquire: partner of the Release by which the process publishes the filled-in site.
    let kept = mapping.header.sites.load(Ordering::Acquire) as usize;
    let mut waiters: HashMap<u32, Vec<Waiters>> = HashMap::new();
    for site in mapping.sites[..kept.min(SITES)].iter().skip(1) {
        let stack = get32(&site.stack);
        let (waits, wait) = (get(&site.waits), get(&site.wait));
        if waits > 0 {
            waiters.entry(get32(&site.record)).or_default().push(Waiters { stack, waits, wait });
        }
    }
    waiters
}

/// Return addresses, innermost first, and the epoch in which they were noted.
pub type NotedStack = (Box<[u64]>, Epoch);

/// The stacks with these numbers. A forked process has all of its parent's stacks, and few of its
/// own.
pub fn stacks(mapping: &Mapping, wanted: impl Iterator<Item = u32>) -> HashMap<u32, NotedStack> {
    // Acquire: partner of the Release by which the process publishes the filled-in stack.
    let kept = mapping.header.stacks.load(Ordering::Acquire) as usize;
    let noted = |stack: &Stack| -> NotedStack {
        let addresses = stack.frames.iter().map(get).take_while(|address| *address != 0);
        (addresses.collect(), get32(&stack.epoch))
    };
    let stacks = &mapping.stacks[..kept.min(STACKS)];
    wanted.filter_map(|number| Some((number, noted(stacks.get(number as usize)?)))).collect()
}

#[derive(Default)]
struct InSlabs {
    exclusive: u64,
    shared: u64,
    handoffs: u64,
}

/// By record.
type Sums = HashMap<u32, InSlabs>;

impl InSlabs {
    fn is_less_than(&self, other: &Self) -> bool {
        self.exclusive < other.exclusive
            || self.shared < other.shared
            || self.handoffs < other.handoffs
    }
}

/// What the threads' counters hold for each record.
fn sum_slabs(mapping: &Mapping) -> Sums {
    let slabs = (get32(&mapping.header.slabs) as usize).min(SLABS);
    let slots = mapping.slabs[..slabs].iter().flat_map(|slab| &slab.slots);
    let mut sums = Sums::new();
    for Slot { record, acquired, shared, handoffs, .. } in slots {
        let record = get32(record);
        if record != 0 {
            // Beyond the records stands for the catch-all.
            let record = if record as usize >= RECORDS { 0 } else { record };
            let sum = sums.entry(record).or_default();
            sum.exclusive += get(acquired);
            sum.shared += get(shared);
            sum.handoffs += get(handoffs);
        }
    }
    sums
}

impl Tally {
    fn of(record: &Record, in_slabs: Option<&InSlabs>, distributions: &[Distributions]) -> Self {
        let none = InSlabs::default();
        let in_slabs = in_slabs.unwrap_or(&none);
        let number = get32(&record.distributions) as usize;
        // Acquire: partner of the process' Release. A wait that is counted is not found under way
        // afterwards.
        let wait = record.wait.load(Ordering::Acquire);
        Self {
            exclusive: get(&record.acquired) + in_slabs.exclusive,
            shared: get(&record.shared) + in_slabs.shared,
            handoffs: get(&record.handoffs) + in_slabs.handoffs,
            contended: get(&record.contended),
            contended_shared: get(&record.contended_shared),
            timeouts: get(&record.timeouts),
            wait,
            wait_ended: wait,
            wait_max: get(&record.wait_max),
            sampled: get32(&record.sampled).into(),
            spin_ns: get(&record.spin_ns),
            holds: get(&record.holds),
            hold: get(&record.hold),
            hold_max: get(&record.hold_max),
            handed: get32(&record.hand_overs.handed).into(),
            returned: get32(&record.hand_overs.returned).into(),
            alike: get32(&record.hand_overs.alike).into(),
            unlike: get32(&record.hand_overs.unlike).into(),
            resumed: get(&record.hand_overs.resumed),
            // All locks without a distribution of their own share number 0, so it describes none of
            // them.
            distributions: (1..distributions.len()).contains(&number).then(|| {
                let mut own = Box::new(Distributed::default());
                own.add(&distributions[number].wait, &distributions[number].hold);
                own
            }),
        }
    }

    /// Adds another lock's counts.
    pub fn add(&mut self, other: &Self) {
        self.exclusive += other.exclusive;
        self.shared += other.shared;
        self.handoffs += other.handoffs;
        self.contended += other.contended;
        self.contended_shared += other.contended_shared;
        self.timeouts += other.timeouts;
        self.wait += other.wait;
        self.wait_ended += other.wait_ended;
        self.wait_max = self.wait_max.max(other.wait_max);
        self.sampled += other.sampled;
        self.spin_ns += other.spin_ns;
        self.holds += other.holds;
        self.hold += other.hold;
        self.hold_max = self.hold_max.max(other.hold_max);
        self.handed += other.handed;
        self.returned += other.returned;
        self.alike += other.alike;
        self.unlike += other.unlike;
        self.resumed += other.resumed;
        if let Some(theirs) = &other.distributions {
            self.distributions.get_or_insert_default().add(&theirs.wait, &theirs.hold);
        }
    }

    /// The same.
    pub fn copied(&self) -> Self {
        let mut copy = Self::default();
        copy.add(self);
        copy
    }

    /// The counts since an earlier moment. If the longest wait or hold has not grown since, it is
    /// estimated from the distributions.
    pub fn since(&self, before: &Self) -> Self {
        let distributions = self.distributions.as_ref().map(|now| {
            let mut since = Box::new(Distributed::default());
            since.add(&now.wait, &now.hold);
            if let Some(old) = &before.distributions {
                since.wait.subtract(&old.wait);
                since.hold.subtract(&old.hold);
            }
            since
        });
        let longest = |now: u64, before: u64, of: fn(&Distributed) -> &Histogram| {
            let largest = distributions.as_ref().and_then(|since| of(since).largest());
            if now > before { now } else { largest.unwrap_or(0).min(now) }
        };
        // A running process may be read in the middle of a step: then a count is a little less than
        // before.
        Self {
            exclusive: self.exclusive.saturating_sub(before.exclusive),
            shared: self.shared.saturating_sub(before.shared),
            handoffs: self.handoffs.saturating_sub(before.handoffs),
            contended: self.contended.saturating_sub(before.contended),
            contended_shared: self.contended_shared.saturating_sub(before.contended_shared),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            wait: self.wait.saturating_sub(before.wait),
            wait_ended: self.wait_ended.saturating_sub(before.wait_ended),
            wait_max: longest(self.wait_max, before.wait_max, |since| &since.wait),
            sampled: self.sampled.saturating_sub(before.sampled),
            spin_ns: self.spin_ns.saturating_sub(before.spin_ns),
            holds: self.holds.saturating_sub(before.holds),
            hold: self.hold.saturating_sub(before.hold),
            hold_max: longest(self.hold_max, before.hold_max, |since| &since.hold),
            handed: self.handed.saturating_sub(before.handed),
            returned: self.returned.saturating_sub(before.returned),
            alike: self.alike.saturating_sub(before.alike),
            unlike: self.unlike.saturating_sub(before.unlike),
            resumed: self.resumed.saturating_sub(before.resumed),
            distributions,
        }
    }

    /// Acquisitions of both sorts.
    pub fn acquired(&self) -> u64 {
        self.exclusive + self.shared
    }

    /// Attempts that waited. A wait that continued with another one counts once.
    pub fn attempts_that_waited(&self) -> u64 {
        self.contended.saturating_sub(self.resumed)
    }

    /// The CPU time of all waits, estimated from samples, in nanoseconds.
    pub fn all_spin_ns(&self) -> f64 {
        self.spin_ns as f64 * self.contended as f64 / self.sampled.max(1) as f64
    }

    /// Whether anything was counted.
    pub fn is_used(&self) -> bool {
        self.acquired() + self.contended + self.timeouts > 0
    }
}

impl Distributed {
    fn add(&mut self, wait: &Histogram, hold: &Histogram) {
        self.wait.add(wait);
        self.hold.add(hold);
    }
}

// Relaxed: counters are independent of each other, and a slightly older or newer value of a living
// process is as good.
pub(in crate::analyze) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

// Relaxed: as above.
pub(in crate::analyze) fn get32(counter: &AtomicU32) -> u32 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_move_meanwhile_are_read_again() {
        let sum = |exclusive| InSlabs { exclusive, ..InSlabs::default() };
        let read = |in_slabs: &Sums| in_slabs.get(&1).map_or(0, |sum| sum.exclusive);
        // They move to the record between the first two samples, and grow afterwards.
        let mut samples = [Some(900), None, Some(3)].into_iter();
        let moved = || samples.next().flatten().into_iter().map(|count| (1, sum(count))).collect();
        assert_eq!(settled(moved, read), 0);
        let mut grown = (5..).map(|count| Sums::from([(1, sum(count))]));
        assert_eq!(settled(|| grown.next().unwrap(), read), 5);
        // Those that move all the time end, too.
        let mut falling = (0..100).rev().map(|count| Sums::from([(1, sum(count))]));
        assert_eq!(settled(|| falling.next().unwrap(), read), 96);
    }
}
