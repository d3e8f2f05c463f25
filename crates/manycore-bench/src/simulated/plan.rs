//! A list of the simulations before they run: to divide them among machines, and to predict their
//! duration.
//!
//! To make a plan, a pool only notes the requests that it gets. So the plan's jobs are those of the
//! run itself, which later finds their results.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use super::job::Job;
use super::outlook::Outlook;
use super::pool::SimulatorPool;
use crate::failure::Failure;

/// Simulations, each once.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    jobs: Vec<Job>,
    keys: BTreeSet<String>,
}

impl Plan {
    /// Calls these functions one after the other with a pool, and notes the jobs that they request.
    /// Nothing is simulated. A returned error is about the requests; missing results are no error.
    pub fn of<A, E>(
        pool: &SimulatorPool,
        asking: impl IntoIterator<Item = A>,
    ) -> Result<Self, Failure>
    where
        A: FnOnce(&SimulatorPool) -> Result<E, Failure>,
    {
        let (notes, noted) = pool.that_notes();
        for ask in asking {
            if let Err(Failure::Usage(text)) = ask(&notes) {
                return Err(Failure::Usage(text));
            }
        }
        let mut plan = Self::default();
        for job in noted.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            plan.add(job);
        }
        Ok(plan)
    }

    fn add(&mut self, job: Job) {
        if self.keys.insert(job.key()) {
            self.jobs.push(job);
        }
    }

    /// The simulations of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        other.jobs.into_iter().for_each(|job| self.add(job));
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Piece `number` of `of`; the first has the number 1. Adjacent jobs, which take about the same
    /// time, are in different pieces.
    ///
    /// # Panics
    ///
    /// If there is no such piece.
    #[must_use]
    pub fn piece(&self, number: usize, of: usize) -> Self {
        assert!((1..=of).contains(&number), "there is no piece {number} of {of}");
        let mut piece = Self::default();
        self.jobs.iter().skip(number - 1).step_by(of).cloned().for_each(|job| piece.add(job));
        piece
    }

    /// How long it is going to take.
    pub fn outlook(&self, pool: &SimulatorPool) -> Outlook {
        Outlook::new(&self.jobs, pool.cache.as_ref(), pool.size())
    }

    /// Simulates the jobs that are not in the pool's cache yet; returns a line for each failure.
    pub fn run(&self, pool: &SimulatorPool) -> Vec<String> {
        let answers = pool.with_outlook(self.outlook(pool)).run(&self.jobs);
        let failed = |(answer, job): (Result<_, String>, &Job)| {
            Some(format!("{}, {} threads: {}", job.mechanism, job.threads, answer.err()?))
        };
        answers.into_iter().zip(&self.jobs).filter_map(failed).collect()
    }
}
