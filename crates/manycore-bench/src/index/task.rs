//! What threads do with an index: the workloads of YCSB.
//!
//! From B. Cooper, A. Silberstein, E. Tam, R. Ramakrishnan and R. Sears, "Benchmarking cloud
//! serving systems with YCSB", SoCC 2010. Records have numbers: first the initial ones from 0 on,
//! then the inserted ones. A record's key is made by mixing the bits of its number, so popular or
//! new records lie anywhere in the order of keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::data::{KeyKind, ValueSize};
use crate::popularity::{Popularity, Ranks};

/// An index and what is done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// `btree`, `art`, `hash` or `bst`.
    pub structure: String,
    /// The mechanism.
    pub sync: String,
    /// Which operations.
    pub mix: Mix,
    /// How many threads.
    pub threads: u32,
    /// What is in the index.
    pub records: Records,
}

/// The records of an index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Records {
    /// How many there are at the start.
    pub initial: u64,
    /// The number of buckets, for a hash table that does not grow.
    pub buckets: u64,
    /// Which of them are asked for.
    pub popularity: Popularity,
    /// What their keys are.
    pub key: KeyKind,
    /// How large their values are.
    pub value: ValueSize,
    /// What everything is drawn by.
    pub seed: u64,
}

impl Records {
    /// A task with `initial` records of numbers, in as many buckets, all equally popular.
    pub fn of(initial: u64) -> Self {
        Self {
            initial,
            buckets: initial,
            popularity: Popularity::Uniform,
            key: KeyKind::U64,
            value: ValueSize::Word,
            seed: 1,
        }
    }

    /// Whether they take long to put in.
    pub(crate) fn is_many(&self) -> bool {
        self.initial >= 1_000_000
    }

    /// The numbers of the initial records, in random order, which a tree that is not balanced
    /// needs.
    pub(crate) fn first(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..self.initial).collect();
        fastrand::Rng::with_seed(!self.seed).shuffle(&mut numbers);
        numbers
    }

    /// What all threads draw their records from.
    pub(crate) fn ranks(&self) -> Ranks {
        self.popularity.ranks(self.initial)
    }
}

/// A record's key, as a number: no two records have the same. The last step of MurmurHash3.
#[inline]
pub(crate) fn key_of(number: u64) -> u64 {
    let mut key = number;
    key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// Half of the operations read, half replace a value.
    YcsbA,
    /// 95 % read, 5 % put in another value.
    YcsbB,
    /// All read.
    YcsbC,
    /// 95 % read the records that were inserted last; 5 % insert.
    YcsbD,
    /// 95 % scan 1 to 100 records, 5 % insert.
    YcsbE,
    /// Half of the operations read. The other half read, and then store a value made from the old
    /// one.
    YcsbF,
    /// This share, in percent, puts in another value, the others read.
    Upserts(f64),
}

/// The mixes of YCSB, by their names.
const YCSB: [(&str, Mix); 6] = [
    ("ycsb-a", Mix::YcsbA),
    ("ycsb-b", Mix::YcsbB),
    ("ycsb-c", Mix::YcsbC),
    ("ycsb-d", Mix::YcsbD),
    ("ycsb-e", Mix::YcsbE),
    ("ycsb-f", Mix::YcsbF),
];

/// The prefix of the name of a mix of upserts.
const UPSERTS: &str = "upsert-";

/// Shares of operations in percent; the others read.
pub(crate) struct Shares {
    pub puts: f64,
    pub inserts: f64,
    pub scans: f64,
    pub modifies: f64,
}

impl Mix {
    pub(crate) fn shares(self) -> Shares {
        let reads = Shares { puts: 0.0, inserts: 0.0, scans: 0.0, modifies: 0.0 };
        match self {
            Self::YcsbA => Shares { puts: 50.0, ..reads },
            Self::YcsbB => Shares { puts: 5.0, ..reads },
            Self::YcsbC => reads,
            Self::YcsbD => Shares { inserts: 5.0, ..reads },
            Self::YcsbE => Shares { inserts: 5.0, scans: 95.0, ..reads },
            Self::YcsbF => Shares { modifies: 50.0, ..reads },
            Self::Upserts(puts) => Shares { puts, ..reads },
        }
    }

    /// The share of operations that change the index, in percent.
    pub fn updates(self) -> f64 {
        let Shares { puts, inserts, modifies, .. } = self.shares();
        puts + inserts + modifies
    }

    /// Whether it has scans.
    pub fn scans(self) -> bool {
        self.shares().scans > 0.0
    }

    /// Whether it has operations that read and then write.
    pub fn modifies(self) -> bool {
        self.shares().modifies > 0.0
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, YCSB.iter().find(|(_, known)| known == self)) {
            (Self::Upserts(percent), _) => write!(f, "{UPSERTS}{percent}"),
            (_, Some((name, _))) => f.write_str(name),
            (_, None) => unreachable!("all others are in the list"),
        }
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, mix)) = YCSB.iter().find(|(name, _)| *name == text) {
            return Ok(*mix);
        }
        let upserts = text.strip_prefix(UPSERTS).and_then(|percent| percent.parse().ok());
        match upserts {
            Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Upserts(percent)),
            _ => Err(format!(
                "there is no workload `{text}`: choose from ycsb-a to ycsb-f, or upsert-20 for 20 % of upserts"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_names() {
        for (name, mix) in YCSB {
            assert_eq!((name.parse(), mix.to_string().as_str()), (Ok(mix), name));
        }
        assert_eq!("upsert-2.5".parse(), Ok(Mix::Upserts(2.5)));
        assert_eq!(Mix::Upserts(20.0).to_string(), "upsert-20");
        for wrong in ["ycsb-g", "upsert-101", "upsert-", "a"] {
            assert!(wrong.parse::<Mix>().unwrap_err().contains("ycsb-f"));
        }
    }

    #[test]
    fn no_two_records_have_a_key() {
        let keys: std::collections::BTreeSet<u64> = (0..100_000).map(key_of).collect();
        assert_eq!(keys.len(), 100_000);
    }
}
