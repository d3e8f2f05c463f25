//! What is asked for more often than other things.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How often each of some things is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Popularity {
    /// All alike.
    #[default]
    Uniform,
    /// The k-th most popular object is used k^S times as rarely as the first. With S = 1, the first
    /// of 10,000 keys gets 10.2 % of the operations.
    Zipf(f64),
}

/// Draws one of several objects by its rank; rank 0 is the most popular.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    /// For each object, the cumulative share of requests. Empty if all objects are equally popular.
    up_to: Arc<[f64]>,
}

impl Popularity {
    /// S, or 0.
    pub(crate) fn exponent(self) -> f64 {
        match self {
            Self::Uniform => 0.0,
            Self::Zipf(exponent) => exponent,
        }
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn fault(self) -> Option<String> {
        let exponent = self.exponent();
        let is_usual = (0.0..=10.0).contains(&exponent);
        (!is_usual).then(|| format!("a zipf exponent of {exponent}: it is between 0 and 10"))
    }

    /// The ranks of `count` things.
    pub(crate) fn ranks(self, count: u64) -> Ranks {
        let Self::Zipf(exponent) = self else { return Ranks { up_to: Arc::new([]) } };
        let mut sum = 0.0;
        let up_to = (1..=count).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Ranks { up_to: up_to.collect() }
    }
}

impl Ranks {
    /// Draws `count` times; no draw if all are alike.
    pub fn draw(&self, count: usize, random: &mut fastrand::Rng) -> Box<[u64]> {
        let Some(sum) = self.up_to.last() else { return Box::default() };
        let mut rank = || {
            let at = random.f64() * sum;
            let rank = self.up_to.partition_point(|up_to| *up_to <= at);
            rank.min(self.up_to.len() - 1) as u64
        };
        (0..count).map(|_| rank()).collect()
    }
}
