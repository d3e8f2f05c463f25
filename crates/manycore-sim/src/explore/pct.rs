//! Threads with priorities that change at few points.
//!
//! Most mistakes need few preemptions, at the right places. So the thread with the highest priority
//! runs. At some steps, chosen in advance, the running thread falls behind all others. A thread
//! that announces that it has nothing to do falls behind as well; otherwise it would run for ever.

use crate::engine::{Choice, Scheduler};

/// Schedules are assumed to have 2^5 to 2^12 steps, because the number is not known before.
const LENGTHS: std::ops::RangeInclusive<u32> = 5..=12;

pub(super) struct Pct {
    random: fastrand::Rng,
    /// The priority of each thread. The thread with the highest one runs. A thread gets one when it
    /// is first seen.
    priorities: Vec<i64>,
    /// The steps at which the running thread falls behind.
    changes: Vec<u64>,
    step: u64,
    /// Below all priorities so far.
    lowest: i64,
}

impl Pct {
    pub(super) fn new(seed: u64, changes: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let length = 1 << random.u32(LENGTHS);
        let changes = (0..changes).map(|_| random.u64(0..length)).collect();
        Self { random, priorities: Vec::new(), changes, step: 0, lowest: 0 }
    }

    fn priority(&mut self, thread: u32) -> i64 {
        while self.priorities.len() <= thread as usize {
            self.priorities.push(self.random.i64(1..=i64::MAX));
        }
        self.priorities[thread as usize]
    }

    fn fall_behind(&mut self, thread: u32) {
        self.priority(thread);
        self.lowest -= 1;
        self.priorities[thread as usize] = self.lowest;
    }
}

impl Scheduler for Pct {
    fn choose(&mut self, choices: &[Choice]) -> usize {
        let highest = |this: &mut Self| {
            (0..choices.len()).max_by_key(|place| this.priority(choices[*place].thread))
        };
        let mut chosen = highest(self).unwrap_or(0);
        if self.changes.contains(&self.step) {
            self.fall_behind(choices[chosen].thread);
            chosen = highest(self).unwrap_or(0);
        }
        if choices[chosen].timer {
            // Once is enough: time passes for the other threads as well.
            self.fall_behind(choices[chosen].thread);
        }
        self.step += 1;
        chosen
    }

    fn yielded(&mut self, thread: u32) {
        self.fall_behind(thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(threads: u32) -> Vec<Choice> {
        (0..threads).map(|thread| Choice { thread, timer: false }).collect()
    }

    #[test]
    fn the_same_thread_runs_except_at_changes() {
        for seed in 0..100 {
            let mut pct = Pct::new(seed, 2);
            let order: Vec<_> = (0..5000).map(|_| pct.choose(&choices(4))).collect();
            let switches = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(switches <= 2, "{switches} switches with seed {seed}");
        }
    }

    #[test]
    fn a_thread_with_nothing_to_do_falls_behind() {
        let mut pct = Pct::new(1, 0);
        let first = pct.choose(&choices(3));
        pct.yielded(first as u32);
        let second = pct.choose(&choices(3));
        pct.yielded(second as u32);
        let third = pct.choose(&choices(3));
        pct.yielded(third as u32);
        assert_eq!(pct.choose(&choices(3)), first);
    }
}
