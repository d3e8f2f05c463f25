//! The work of threads: the locks that they take, how often and for how long, and the time in
//! between.

use serde::{Deserialize, Serialize};

use crate::work::Length;

/// The program of all threads of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// The locks; at least one.
    pub locks: Vec<Latch>,
    /// Time between two sections.
    pub outside: Length,
    /// The share of sections that only read, in percent.
    pub reads: f64,
    /// Sections of one operation.
    pub sections: u32,
    /// How long a thread sleeps between two operations, like a terminal whose user thinks.
    pub think_ns: f64,
    /// What some operations do in addition.
    #[serde(default)]
    pub updating: Option<Updating>,
}

/// An operation that updates has additional sections. The kind of an operation is known by the
/// sleep after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Updating {
    /// The share of such operations, in percent.
    pub share: f64,
    /// How many more sections they have.
    pub sections: u32,
    /// How often, and for how long, the additional sections take each lock, in the order of the
    /// locks.
    pub locks: Vec<Latch>,
}

/// A lock, as the program uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latch {
    /// How often it is taken, relative to the others.
    pub weight: f64,
    /// Time in a section.
    pub section: Length,
    /// For a reader-writer lock beside mutexes: the share of its sections that only read, in
    /// percent. It is the lock that `manycore run` would use for the program's reader-writer locks,
    /// whichever the mutexes are. Simulated only.
    #[serde(default)]
    pub shared: Option<f64>,
    /// Cache lines that each section reads and, unless it only reads, writes: at least one.
    #[serde(default = "one")]
    pub data: u32,
}

/// The usual number of lines: those by which the benchmark checks the lock.
pub const USUAL_DATA: u32 = 1;

/// The most lines that a section may move.
pub const MOST_DATA: u32 = 4_096;

fn one() -> u32 {
    USUAL_DATA
}

/// Whether sections can move this number of lines; the error says which numbers they can.
pub(crate) fn check_data(lines: u32) -> Result<(), String> {
    match lines {
        1..=MOST_DATA => Ok(()),
        _ => Err(format!("{lines} lines of data: a section moves between 1 and {MOST_DATA}")),
    }
}

impl Mix {
    /// A mix of `locks` equal locks; an operation is a section, and no thread sleeps.
    pub fn uniform(locks: u32, section: Length, outside: Length, reads: f64) -> Self {
        let latch = Latch { weight: 1.0, section, shared: None, data: USUAL_DATA };
        let locks = (0..locks).map(|_| latch.clone()).collect();
        Self { locks, outside, reads, sections: 1, think_ns: 0.0, updating: None }
    }

    /// As [`uniform`](Self::uniform), with sections that move this number of cache lines each.
    pub fn with_data(mut self, lines: u32) -> Self {
        self.locks.iter_mut().for_each(|lock| lock.data = lines);
        self
    }

    /// What operations do that go on to update.
    pub(crate) fn to_update(&self, updating: &Updating) -> Self {
        Self { locks: updating.locks.clone(), updating: None, ..self.clone() }
    }

    /// The number of sections of an operation: the mean over all operations.
    pub fn sections_mean(&self) -> f64 {
        let more = |updating: &Updating| updating.share / 100.0 * f64::from(updating.sections);
        f64::from(self.sections) + self.updating.as_ref().map_or(0.0, more)
    }

    /// Draws the index of a lock with the probability of its weight.
    pub(crate) fn draw(&self, random: &mut fastrand::Rng) -> usize {
        let all: f64 = self.locks.iter().map(|lock| lock.weight).sum();
        let mut left = random.f64() * all;
        let reached = self.locks.iter().position(|lock| {
            left -= lock.weight;
            left < 0.0
        });
        reached.unwrap_or(self.locks.len() - 1)
    }

    /// The mean time in a section, over all locks by their weights.
    pub fn section_mean_ns(&self) -> f64 {
        let all: f64 = self.locks.iter().map(|lock| lock.weight).sum();
        self.locks.iter().map(|lock| lock.weight * lock.section.mean_ns).sum::<f64>() / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_drawn_by_their_weights() {
        let latch = |weight, ns| Latch {
            weight,
            section: Length::fixed(ns),
            shared: None,
            data: USUAL_DATA,
        };
        let locks = vec![latch(3.0, 100.0), latch(0.0, 7.0), latch(1.0, 500.0)];
        let mix = Mix { locks, ..Mix::uniform(1, Length::fixed(1.0), Length::fixed(1.0), 0.0) };
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = [0; 3];
        (0..4_000).for_each(|_| counts[mix.draw(&mut random)] += 1);
        assert!((2_900..3_100).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        assert_eq!(mix.section_mean_ns(), 200.0);
    }
}
