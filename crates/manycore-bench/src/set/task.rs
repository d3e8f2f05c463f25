//! What threads do with a set. Real and simulated machines draw it the same way.

use serde::{Deserialize, Serialize};

use crate::popularity::{Popularity, Ranks};

/// A set, and what threads do with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// `list`, `hash`, `bst` or `btree`.
    pub structure: String,
    /// The mechanism.
    pub sync: String,
    /// The number of threads.
    pub threads: u32,
    /// The share of operations that may change the set, in percent: half of them insert, half
    /// remove.
    pub update: f64,
    /// The keys.
    pub keys: Keys,
}

/// The keys of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    /// The number of keys at the start.
    pub initial: u64,
    /// Keys are below this.
    pub range: u64,
    /// The number of buckets of a hash table.
    pub buckets: u64,
    /// How often each key is used.
    pub popularity: Popularity,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl Keys {
    /// A task with `initial` keys below twice that number, in a tenth as many buckets. All keys are
    /// equally popular.
    pub fn of(initial: u64) -> Self {
        Self {
            initial,
            range: initial.saturating_mul(2),
            buckets: (initial / 10).max(1),
            popularity: Popularity::Uniform,
            seed: 1,
        }
    }
}

/// An operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Contains(u64),
    Insert(u64),
    Remove(u64),
}

impl Operation {
    /// Whether the operation may change the set.
    pub fn updates(self) -> bool {
        !matches!(self, Self::Contains(_))
    }
}

/// If the popularity of keys is not uniform, each thread draws `DRAWN` keys before the start, and
/// then uses them again and again.
const DRAWN: usize = 1 << 16;

impl Keys {
    /// Whether inserting the keys takes long.
    pub(crate) fn is_many(&self) -> bool {
        self.initial >= 1_000_000
    }

    /// The keys of the start, in random order, which a tree that is not balanced needs.
    pub fn first(&self) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut left = self.initial;
        // Each key with the probability that gives this many keys in the end.
        let is_chosen = |key: &u64| {
            let chosen = random.u64(..self.range - key) < left;
            left -= u64::from(chosen);
            chosen
        };
        let mut keys: Vec<u64> = (0..self.range).filter(is_chosen).collect();
        fastrand::Rng::with_seed(!self.seed).shuffle(&mut keys);
        keys
    }

    /// The distribution from which all threads draw their keys.
    pub(crate) fn ranks(&self) -> Ranks {
        self.popularity.ranks(self.range)
    }

    /// The key with this rank of popularity. Popular keys are spread over the range.
    fn key_of(&self, rank: u64) -> u64 {
        // A prime that divides no smaller range, so each key has one rank.
        (u128::from(rank) * 11_400_714_785_074_694_791 % u128::from(self.range)) as u64
    }
}

impl Task {
    /// A thread's endless sequence of operations.
    pub(crate) fn operations(&self, thread: u32, ranks: &Ranks) -> Operations {
        let keys = &self.keys;
        // Any odd multiplier keeps the threads' seeds apart.
        let own = (u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(keys.seed.wrapping_add(own));
        let mut drawn = ranks.draw(DRAWN, &mut random);
        drawn.iter_mut().for_each(|rank| *rank = keys.key_of(*rank));
        // In units of 2^-32.
        let share = |percent: f64| (percent / 100.0 * 4_294_967_296.0) as u64;
        Operations {
            random,
            range: keys.range,
            inserts: share(self.update / 2.0),
            updates: share(self.update),
            drawn,
            next: 0,
        }
    }
}

/// A thread's operations.
#[derive(Clone, Debug)]
pub(crate) struct Operations {
    random: fastrand::Rng,
    range: u64,
    inserts: u64,
    updates: u64,
    drawn: Box<[u64]>,
    next: usize,
}

impl Operations {
    #[inline]
    pub fn draw(&mut self) -> Operation {
        let word = self.random.u64(..);
        let key = if self.drawn.is_empty() {
            // The upper half of the word, mapped to the range without a division.
            ((u128::from(self.random.u64(..)) * u128::from(self.range)) >> 64) as u64
        } else {
            self.next = (self.next + 1) % DRAWN;
            self.drawn[self.next]
        };
        match word >> 32 {
            part if part < self.inserts => Operation::Insert(key),
            part if part < self.updates => Operation::Remove(key),
            _ => Operation::Contains(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn task(popularity: Popularity) -> Task {
        Task {
            structure: "list".into(),
            sync: "lock:futex".into(),
            threads: 1,
            update: 20.0,
            keys: Keys { range: 10_000, popularity, seed: 7, ..Keys::of(500) },
        }
    }

    fn counts(task: &Task) -> (BTreeMap<u64, u32>, [u32; 3]) {
        let (mut keys, mut kinds) = (BTreeMap::new(), [0; 3]);
        let mut operations = task.operations(3, &task.keys.ranks());
        for _ in 0..100_000 {
            let (key, kind) = match operations.draw() {
                Operation::Contains(key) => (key, 0),
                Operation::Insert(key) => (key, 1),
                Operation::Remove(key) => (key, 2),
            };
            *keys.entry(key).or_default() += 1;
            kinds[kind] += 1;
        }
        (keys, kinds)
    }

    #[test]
    fn the_set_starts_with_the_requested_number_of_keys() {
        let mut keys = task(Popularity::Uniform).keys.first();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 500);
        assert!(keys[499] < 10_000 && keys[499] > 9_000);
        let full = Keys { range: 10_000, ..Keys::of(10_000) };
        assert_eq!(full.first().len(), 10_000);
    }

    #[test]
    fn operations_have_the_requested_shares() {
        let (keys, [reads, inserts, removes]) = counts(&task(Popularity::Uniform));
        assert!((79_000..81_000).contains(&reads), "{reads}");
        assert!((9_500..10_500).contains(&inserts) && (9_500..10_500).contains(&removes));
        assert!(keys.len() > 9_900 && *keys.values().max().unwrap() < 50);
    }

    #[test]
    fn the_most_popular_of_ten_thousand_keys_has_a_tenth() {
        let (keys, _) = counts(&task(Popularity::Zipf(1.0)));
        let most = *keys.values().max().unwrap();
        assert!((9_700..10_700).contains(&most), "{most}");
        assert_eq!(keys[&0], most);
    }

    #[test]
    fn every_key_has_a_rank() {
        let keys = Keys::of(5_000);
        let keys: std::collections::BTreeSet<_> =
            (0..keys.range).map(|rank| keys.key_of(rank)).collect();
        assert_eq!(keys.len(), 10_000);
    }
}
