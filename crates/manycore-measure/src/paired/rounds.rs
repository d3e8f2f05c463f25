//! How often to repeat.

use std::time::{Duration, Instant};

use super::MAX_PAIRS;

/// How often to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// A number of rounds.
    Count(u32),
    /// As many as there is time for, and at least one.
    Within(Duration),
}

/// Decides whether there is time for another round.
#[derive(Debug)]
pub struct Stopwatch {
    limit: Rounds,
    start: Instant,
    /// The number of rounds so far, with the present one.
    pub rounds: u32,
}

impl Stopwatch {
    /// Starts now.
    pub fn new(limit: Rounds) -> Self {
        Self { limit, start: Instant::now(), rounds: 0 }
    }

    /// Whether another round begins.
    pub fn another(&mut self) -> bool {
        let elapsed = self.start.elapsed();
        let more = match self.limit {
            Rounds::Count(count) => self.rounds < count,
            // Rounds are about equally long.
            Rounds::Within(budget) => self.rounds == 0 || elapsed + elapsed / self.rounds <= budget,
        };
        let more = more && (self.rounds as usize) < MAX_PAIRS;
        self.rounds += u32::from(more);
        more
    }
}
