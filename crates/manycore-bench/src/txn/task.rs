//! What threads do with a database.
//!
//! `ycsb16` is the first workload of X. Yu, G. Bezerra, A. Pavlo, S. Devadas and M. Stonebraker,
//! "Staring into the Abyss: An Evaluation of Concurrency Control with One Thousand Cores", VLDB
//! 2014 (DBx1000): a transaction makes 16 requests, each of which reads a record or adds to it.
//! `tpcc` has four of the five transactions of the Transaction Processing Performance Council's
//! benchmark C: see [`tpcc`](super::tpcc).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::popularity::Popularity;

/// A database and what is done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The mechanism.
    pub sync: String,
    /// Which transactions.
    pub mix: Mix,
    /// How many threads.
    pub threads: u32,
    /// What is in the database at the start.
    pub size: Size,
    /// The share of requests of `ycsb16` that write, in percent.
    pub update: f64,
    /// Which records are asked for.
    pub popularity: Popularity,
    /// What everything is drawn by.
    pub seed: u64,
}

/// Which transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Transactions of 16 requests.
    Ycsb16,
    /// Orders and payments.
    Tpcc,
}

/// What is in a database at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Records of `ycsb16`.
    pub records: u64,
    /// Warehouses of `tpcc`.
    pub warehouses: u64,
    /// The number of items that each warehouse has in stock. TPC-C has 100,000.
    pub items: u64,
    /// The number of customers of each of the 10 districts of a warehouse. TPC-C has 3,000.
    pub customers: u64,
}

impl Default for Size {
    fn default() -> Self {
        Self { records: 10_000, warehouses: 8, items: 10_000, customers: 100 }
    }
}

impl Task {
    /// The number of rows at the start, or an approximation.
    pub(crate) fn rows(&self) -> u64 {
        self.mix.rows(self.size)
    }
}

impl Mix {
    /// All, with their names.
    const ALL: [(&'static str, Self); 2] = [("ycsb16", Self::Ycsb16), ("tpcc", Self::Tpcc)];

    /// The number of a database's rows at the start, or an approximation.
    pub(crate) fn rows(self, size: Size) -> u64 {
        let Size { records, warehouses, items, customers } = size;
        match self {
            Self::Ycsb16 => records,
            // 15 rows for a customer: its own and its name's, three for an order, and ten order
            // lines.
            Self::Tpcc => warehouses * (items + 10 * customers * 15) + items,
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::ALL.iter().find(|(_, known)| known == self);
        f.write_str(known.expect("all are in the list").0)
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, mix)| *mix)
            .ok_or_else(|| format!("there is no workload `{text}`: choose from ycsb16 and tpcc"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_names() {
        for (name, mix) in Mix::ALL {
            assert_eq!((name.parse(), mix.to_string().as_str()), (Ok(mix), name));
        }
        assert!("tpch".parse::<Mix>().unwrap_err().contains("ycsb16"));
    }
}
