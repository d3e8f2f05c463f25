//! One thread's operations on an index, drawn the same way for real and for simulated machines.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manycore::sync::CachePadded;

use super::any_index::IndexHandle;
use super::data::Seen;
use super::task::{Mix, Task, key_of};
use crate::popularity::Ranks;

/// An operation, on records by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read(u64),
    Put(u64),
    /// An insertion of the thread's next record.
    Insert,
    /// From a record on, this many.
    Scan(u64, u32),
    Modify(u64),
}

impl Operation {
    /// Whether it changes the index.
    pub fn updates(self) -> bool {
        matches!(self, Self::Put(_) | Self::Insert | Self::Modify(_))
    }
}

/// The longest scan.
const SCAN_MAX: u32 = 100;

/// If the popularity of records is not uniform, each thread draws this many before the start, and
/// then uses them again and again.
const DRAWN: usize = 1 << 16;

/// Records that threads insert. The records of one thread lie between those of the others:
///
/// ```text
///   0 ... initial | kept by earlier slices ... base | 0 1 2 .. of threads | 0 1 2 .. | ...
/// ```
#[derive(Debug)]
pub(crate) struct Inserted {
    /// Records of the start.
    initial: u64,
    /// The number of the first record.
    base: u64,
    /// By thread: how many it has inserted.
    counts: Box<[CachePadded<AtomicU64>]>,
}

impl Inserted {
    /// None yet, by this many threads.
    pub fn new(initial: u64, base: u64, threads: u32) -> Self {
        Self { initial, base, counts: (0..threads).map(|_| CachePadded::default()).collect() }
    }

    /// The number of a thread's record.
    fn number(&self, thread: usize, index: u64) -> u64 {
        self.base + index * self.counts.len() as u64 + thread as u64
    }

    /// Inserts the thread's next record. Other threads can see it when the function has returned.
    #[inline]
    fn insert(&self, thread: usize, insert: impl FnOnce(u64)) {
        let count = &self.counts[thread];
        let index = count.load(Ordering::Relaxed); // Relaxed: no other thread writes it
        insert(self.number(thread, index));
        // Release: partner of the Acquire in `latest`, which then finds the record.
        count.store(index + 1, Ordering::Release);
    }

    /// The record of this rank by age, 0 for the newest one of a thread. It exists.
    #[inline]
    fn latest(&self, rank: u64) -> u64 {
        let threads = self.counts.len() as u64;
        let (thread, age) = ((rank % threads) as usize, rank / threads);
        // Acquire: partner of the Release in `insert`.
        let count = self.counts[thread].load(Ordering::Acquire);
        match count.checked_sub(age + 1) {
            Some(index) => self.number(thread, index),
            None => self.initial - 1 - (rank - count * threads).min(self.initial - 1),
        }
    }

    /// All of them, when the threads have ended.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        let of_thread = move |(thread, count): (usize, &CachePadded<AtomicU64>)| {
            // Relaxed: the threads were joined.
            (0..count.load(Ordering::Relaxed)).map(move |index| self.number(thread, index))
        };
        self.counts.iter().enumerate().flat_map(of_thread)
    }

    /// How many there are, when the threads have ended.
    pub fn count(&self) -> u64 {
        // Relaxed: the threads were joined.
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The number of the first record that is behind all of them.
    pub fn end(&self) -> u64 {
        self.all().max().map_or(self.base, |last| last + 1)
    }
}

/// A thread's operations.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    random: fastrand::Rng,
    /// The cumulative shares, in units of 2^-32, of operations that put, insert, scan and modify.
    up_to: [u64; 4],
    reads_latest: bool,
    initial: u64,
    drawn: Box<[u64]>,
    next: usize,
    inserted: Arc<Inserted>,
}

impl Operations {
    /// The endless operations of one thread.
    pub fn new(task: &Task, thread: u32, ranks: &Ranks, inserted: &Arc<Inserted>) -> Self {
        // Any odd multiplier keeps the threads' seeds apart.
        let own = (u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(task.records.seed.wrapping_add(own));
        let drawn = ranks.draw(DRAWN, &mut random);
        let shares = task.mix.shares();
        let mut sum = 0.0;
        let up_to = [shares.puts, shares.inserts, shares.scans, shares.modifies].map(|percent| {
            sum += percent;
            (sum / 100.0 * 4_294_967_296.0) as u64
        });
        Self {
            random,
            up_to,
            reads_latest: task.mix == Mix::YcsbD,
            initial: task.records.initial,
            drawn,
            next: 0,
            inserted: Arc::clone(inserted),
        }
    }

    /// Draws one.
    #[inline]
    pub fn draw(&mut self) -> Operation {
        let part = self.random.u64(..) >> 32;
        let rank = self.rank();
        let [puts, inserts, scans, modifies] = self.up_to;
        match part {
            _ if part < puts => Operation::Put(rank),
            _ if part < inserts => Operation::Insert,
            _ if part < scans => Operation::Scan(rank, self.random.u32(1..=SCAN_MAX)),
            _ if part < modifies => Operation::Modify(rank),
            _ if self.reads_latest => Operation::Read(self.inserted.latest(rank)),
            _ => Operation::Read(rank),
        }
    }

    /// Which record: the more popular, the smaller its number.
    #[inline]
    fn rank(&mut self) -> u64 {
        if self.drawn.is_empty() {
            // The upper half of the product: mapped to the range without a division.
            ((u128::from(self.random.u64(..)) * u128::from(self.initial)) >> 64) as u64
        } else {
            self.next = (self.next + 1) % DRAWN;
            self.drawn[self.next]
        }
    }
}

/// What threads have seen and done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The number of look-ups of existing records that have found nothing.
    pub missed: u64,
    /// Values that are none of their key.
    pub wrong: u64,
    /// Updates that read and then wrote.
    pub modified: u64,
    /// Entries that scans have read.
    pub scanned: u64,
}

impl Tally {
    /// The sum over all threads.
    pub fn sum(tallies: impl IntoIterator<Item = Self>) -> Self {
        tallies.into_iter().fold(Self::default(), |sum, tally| Self {
            missed: sum.missed + tally.missed,
            wrong: sum.wrong + tally.wrong,
            modified: sum.modified + tally.modified,
            scanned: sum.scanned + tally.scanned,
        })
    }
}

/// Does a thread's operations.
pub(crate) struct Actor<'a> {
    pub handle: Box<dyn IndexHandle + 'a>,
    thread: usize,
    inserted: Arc<Inserted>,
    /// The count of its next value, which differs from the one before.
    count: u32,
    pub tally: Tally,
}

impl<'a> Actor<'a> {
    /// Creates one that uses this handle.
    pub fn new(handle: Box<dyn IndexHandle + 'a>, thread: u32, inserted: &Arc<Inserted>) -> Self {
        let inserted = Arc::clone(inserted);
        Self { handle, thread: thread as usize, inserted, count: 0, tally: Tally::default() }
    }

    /// Does one.
    #[inline]
    pub fn act(&mut self, operation: Operation) {
        let Self { handle, tally, .. } = self;
        match operation {
            Operation::Read(number) => match handle.get(key_of(number)) {
                Seen::Count(count) => _ = std::hint::black_box(count),
                Seen::Nothing => tally.missed += 1,
                Seen::Wrong => tally.wrong += 1,
            },
            Operation::Put(number) => {
                self.count = self.count.wrapping_add(1);
                handle.put(key_of(number), self.count);
            }
            Operation::Insert => {
                self.inserted.insert(self.thread, |number| handle.put(key_of(number), 0));
            }
            Operation::Scan(number, most) => {
                let scan = handle.scan(key_of(number), most);
                tally.scanned += u64::from(scan.entries);
                tally.wrong += u64::from(scan.wrong);
            }
            Operation::Modify(number) => match handle.modify(key_of(number)) {
                true => tally.modified += 1,
                false => tally.missed += 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::task::Records;
    use crate::popularity::Popularity;

    fn task(mix: &str, popularity: Popularity) -> Task {
        Task {
            structure: "btree".into(),
            sync: "mvrlu".into(),
            mix: mix.parse().unwrap(),
            threads: 3,
            records: Records { popularity, ..Records::of(10_000) },
        }
    }

    fn drawn(task: &Task) -> Vec<Operation> {
        let inserted = Arc::new(Inserted::new(10_000, 10_000, 3));
        let mut operations = Operations::new(task, 1, &task.records.ranks(), &inserted);
        (0..100_000).map(|_| operations.draw()).collect()
    }

    #[test]
    fn shares_are_those_of_ycsb() {
        let shares = |mix: &str| {
            let mut shares = [0; 5];
            for operation in drawn(&task(mix, Popularity::Uniform)) {
                shares[match operation {
                    Operation::Read(_) => 0,
                    Operation::Put(_) => 1,
                    Operation::Insert => 2,
                    Operation::Scan(_, most) => {
                        assert!((1..=SCAN_MAX).contains(&most));
                        3
                    }
                    Operation::Modify(_) => 4,
                }] += 1;
            }
            shares.map(|count| (f64::from(count) / 1_000.0).round() as u32)
        };
        assert_eq!(shares("ycsb-a"), [50, 50, 0, 0, 0]);
        assert_eq!(shares("ycsb-b"), [95, 5, 0, 0, 0]);
        assert_eq!(shares("ycsb-c"), [100, 0, 0, 0, 0]);
        assert_eq!(shares("ycsb-d"), [95, 0, 5, 0, 0]);
        assert_eq!(shares("ycsb-e"), [0, 0, 5, 95, 0]);
        assert_eq!(shares("ycsb-f"), [50, 0, 0, 0, 50]);
        assert_eq!(shares("upsert-20"), [80, 20, 0, 0, 0]);
    }

    #[test]
    fn the_most_popular_of_ten_thousand_records_has_a_tenth() {
        let mut counts = BTreeMap::new();
        for operation in drawn(&task("ycsb-c", Popularity::Zipf(1.0))) {
            *counts.entry(format!("{operation:?}")).or_insert(0) += 1;
        }
        let most = counts["Read(0)"];
        assert!((9_700..10_700).contains(&most), "{most}");
        assert_eq!(counts.values().max(), Some(&most));
    }

    #[test]
    fn the_latest_records_are_those_that_were_inserted_last() {
        let inserted = Inserted::new(100, 250, 2);
        let mut seen = Vec::new();
        (0..3).for_each(|_| inserted.insert(1, |number| seen.push(number)));
        inserted.insert(0, |number| seen.push(number));
        assert_eq!(seen, [251, 253, 255, 250]);
        // The newest record of each thread, the next newest, and then those of the start.
        let ranks = [0, 1, 2, 3, 5, 4, 7].map(|rank| inserted.latest(rank));
        assert_eq!(ranks, [250, 255, 99, 253, 251, 97, 98]);
        assert!((0..100).all(|rank| inserted.latest(rank) < 256));
        let mut all: Vec<u64> = inserted.all().collect();
        all.sort_unstable();
        assert_eq!((all, inserted.count(), inserted.end()), (vec![250, 251, 253, 255], 4, 256));
    }
}
