//! The order of runs.

/// An endless sequence of rounds; in each, every candidate runs once, in an order drawn for that
/// round.
///
/// The same seed gives the same sequence.
#[derive(Clone, Debug)]
pub struct Schedule {
    candidates: usize,
    random: fastrand::Rng,
}

impl Schedule {
    /// Rounds of this many candidates, which are numbers from 0.
    pub fn new(candidates: usize, seed: u64) -> Self {
        Self { candidates, random: fastrand::Rng::with_seed(seed) }
    }
}

impl Iterator for Schedule {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let mut round: Vec<usize> = (0..self.candidates).collect();
        self.random.shuffle(&mut round);
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_once_a_round() {
        for mut round in Schedule::new(7, 1).take(100) {
            round.sort_unstable();
            assert_eq!(round, (0..7).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_changes_and_the_seed_decides_it() {
        let rounds = |seed| Schedule::new(2, seed).take(1_000).collect::<Vec<_>>();
        assert_eq!(rounds(5), rounds(5));
        assert_ne!(rounds(5), rounds(6));
        let first = rounds(5).iter().filter(|round| round[0] == 0).count();
        assert!((420..580).contains(&first), "candidate 0 went first in {first} of 1000 rounds");
    }
}
