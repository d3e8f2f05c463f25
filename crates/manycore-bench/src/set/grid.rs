//! What threads do with sets: a grid of points, the same for every machine.

use super::contenders::STRUCTURES;
use super::task::{Keys, Task};
use crate::failure::Failure;
use crate::popularity::Popularity;
use crate::slice::MOST_THREADS;

/// The largest range of keys that is allowed.
const KEYS_MAX: u64 = 1 << 32;

/// The largest range of keys with unequal popularity. A table has a number for each such key.
const POPULAR_MAX: u64 = 10_000_000;

/// A structure, mechanisms, and a grid of points.
#[derive(Clone, Debug)]
pub struct TaskGrid {
    /// `list`, `hash`, `bst` or `btree`.
    pub structure: String,
    /// Names of mechanisms; the first is the base line.
    pub syncs: Vec<String>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// Shares of operations that may change the set, in percent: half of them insert, half remove.
    pub updates: Vec<f64>,
    /// The keys.
    pub keys: Keys,
}

impl Default for TaskGrid {
    /// A hash table of 10,000 keys with `lock:adaptive`: 1, 2 and 8 threads, 20 % updates.
    fn default() -> Self {
        Self {
            structure: "hash".into(),
            syncs: vec!["lock:adaptive".into()],
            threads: vec![1, 2, 8],
            updates: vec![20.0],
            keys: Keys::of(10_000),
        }
    }
}

impl TaskGrid {
    /// Checks the grid. `names` are the mechanisms that the structure has.
    pub(crate) fn check(&self, names: &[String]) -> Result<(), Failure> {
        let Keys { initial, range, buckets, popularity, .. } = self.keys;
        let unknown = self.syncs.iter().find(|sync| !names.contains(sync));
        let strange_threads = self.threads.iter().find(|n| !(1..=MOST_THREADS).contains(*n));
        let strange_update = self.updates.iter().find(|u| !(0.0..=100.0).contains(*u));
        let too_popular = popularity != Popularity::Uniform && range > POPULAR_MAX;
        let faults = [
            (!STRUCTURES.contains(&self.structure.as_str())).then(|| {
                format!(
                    "there is no structure `{}`: choose from {}",
                    self.structure,
                    STRUCTURES.join(", ")
                )
            }),
            self.syncs.is_empty().then(|| "no mechanisms: give some, such as lock:adaptive".into()),
            unknown.map(|unknown| {
                let names = names.join(", ");
                format!("no {} by `{unknown}`: choose from {names}", self.structure)
            }),
            (self.threads.is_empty() || self.updates.is_empty())
                .then(|| "nothing to measure: give a number of threads and an update share".into()),
            strange_threads
                .map(|n| format!("{n} threads: a thread count is between 1 and {MOST_THREADS}")),
            strange_update.map(|u| format!("an update share of {u}: it is between 0 and 100 %")),
            (!(1..=KEYS_MAX).contains(&range) || initial > range).then(|| {
                format!(
                    "{initial} keys of {range}: the range holds the initial keys, and is at most 2^32"
                )
            }),
            (!(1..=KEYS_MAX).contains(&buckets))
                .then(|| format!("{buckets} buckets: there are between 1 and 2^32")),
            too_popular
                .then(|| format!("zipf over {range} keys: use a range of at most {POPULAR_MAX}")),
            popularity.fault(),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// Each share of updates with each number of threads, for the base line's mechanism.
    pub(crate) fn points(&self) -> Vec<Task> {
        let point = |update: &f64, threads: &u32| Task {
            structure: self.structure.clone(),
            sync: self.syncs[0].clone(),
            threads: *threads,
            update: *update,
            keys: self.keys.clone(),
        };
        let of_update = |update| self.threads.iter().map(move |threads| point(update, threads));
        self.updates.iter().flat_map(of_update).collect()
    }
}
