//! The operations of threads on indexes: a grid of points, the same for every machine.

use super::any_index::{Contender, names};
use super::task::{Mix, Records, Task};
use crate::failure::Failure;
use crate::popularity::Popularity;
use crate::slice::MOST_THREADS;

/// The largest index for this test. A list has a number for each record.
const RECORDS_MAX: u64 = 1 << 30;

/// The largest number of records with unequal popularity. A table has a number for each.
const POPULAR_MAX: u64 = 10_000_000;

/// What there is to choose from.
pub(crate) const STRUCTURES: [&str; 4] = ["btree", "art", "hash", "bst"];

/// A structure, mechanisms, and a grid of points.
#[derive(Clone, Debug)]
pub struct TaskGrid {
    /// `btree`, `art`, `hash` or `bst`.
    pub structure: String,
    /// Names of mechanisms; the first is the base line.
    pub syncs: Vec<String>,
    /// Which operations.
    pub mixes: Vec<Mix>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// What is in the index.
    pub records: Records,
}

impl Default for TaskGrid {
    /// A B+tree of 10,000 records by `mvrlu`, with 1, 2 and 8 threads and workload A.
    fn default() -> Self {
        Self {
            structure: "btree".into(),
            syncs: vec!["mvrlu".into()],
            mixes: vec![Mix::YcsbA],
            threads: vec![1, 2, 8],
            records: Records { popularity: Popularity::Zipf(0.99), ..Records::of(10_000) },
        }
    }
}

impl TaskGrid {
    /// Whether it makes sense, for these contenders.
    pub(crate) fn check(&self, contenders: &'static [Contender]) -> Result<(), Failure> {
        let Records { initial, buckets, popularity, .. } = self.records;
        let known = names(contenders, &self.structure);
        let unknown = self.syncs.iter().find(|sync| !known.contains(&sync.as_str()));
        let strange_threads = self.threads.iter().find(|n| !(1..=MOST_THREADS).contains(*n));
        let too_popular = popularity != Popularity::Uniform && initial > POPULAR_MAX;
        let faults = [
            (!STRUCTURES.contains(&self.structure.as_str())).then(|| {
                let structures = STRUCTURES.join(", ");
                format!("there is no structure `{}`: choose from {structures}", self.structure)
            }),
            self.syncs.is_empty().then(|| {
                let mixes: Vec<_> = self.mixes.iter().map(Mix::to_string).collect();
                format!(
                    "no {} can do {}: choose another workload",
                    self.structure,
                    mixes.join(", ")
                )
            }),
            unknown.map(|unknown| {
                let known = known.join(", ");
                format!("no {} by `{unknown}`: choose from {known}", self.structure)
            }),
            (self.threads.is_empty() || self.mixes.is_empty())
                .then(|| "nothing to measure: give a number of threads and a workload".into()),
            strange_threads
                .map(|n| format!("{n} threads: a thread count is between 1 and {MOST_THREADS}")),
            (!(1..=RECORDS_MAX).contains(&initial))
                .then(|| format!("{initial} records: there are between 1 and 2^30 at the start")),
            (!(1..=RECORDS_MAX).contains(&buckets))
                .then(|| format!("{buckets} buckets: there are between 1 and 2^30")),
            too_popular.then(|| {
                format!("zipf over {initial} records: use --zipf 0, or {POPULAR_MAX} at most")
            }),
            popularity.fault(),
            self.refusal(contenders, &self.syncs),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// The reason why one of these, by name, cannot do the requested task; `None` if all can.
    pub(crate) fn refusal(
        &self,
        contenders: &'static [Contender],
        names: &[String],
    ) -> Option<String> {
        let points = self.points();
        let of_structure = contenders.iter().filter(|known| known.structure == self.structure);
        let mut meant = of_structure.filter(|known| names.iter().any(|name| name == known.name));
        meant.find_map(|contender| points.iter().find_map(|point| contender.refusal(point)))
    }

    /// With all mechanisms that can do what is asked.
    #[must_use]
    pub(crate) fn with_all(self, contenders: &'static [Contender]) -> Self {
        let can = |name: &&str| self.refusal(contenders, &[(*name).to_owned()]).is_none();
        let all = names(contenders, &self.structure).into_iter().filter(can);
        Self { syncs: all.map(str::to_owned).collect(), ..self }
    }

    /// Each mix with each number of threads. The mechanism is the base line.
    pub(crate) fn points(&self) -> Vec<Task> {
        let point = |mix: &Mix, threads: &u32| Task {
            structure: self.structure.clone(),
            sync: self.syncs.first().cloned().unwrap_or_default(),
            mix: *mix,
            threads: *threads,
            records: self.records.clone(),
        };
        let of_mix = |mix| self.threads.iter().map(move |threads| point(mix, threads));
        self.mixes.iter().flat_map(of_mix).collect()
    }
}
