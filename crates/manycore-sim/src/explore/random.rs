//! Chooses any thread that can continue.

use crate::engine::{Choice, Scheduler};

/// One in this many choices may let time pass while another thread could continue. Otherwise no
/// timeout would ever be long enough.
const TIMERS: u32 = 16;

pub(super) struct Random(fastrand::Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }
}

impl Scheduler for Random {
    fn choose(&mut self, choices: &[Choice]) -> usize {
        let active = choices.iter().filter(|choice| !choice.timer).count();
        if active == 0 || active < choices.len() && self.0.u32(0..TIMERS) == 0 {
            return self.0.usize(0..choices.len());
        }
        let chosen = self.0.usize(0..active);
        let mut places = choices.iter().enumerate().filter(|(_, choice)| !choice.timer);
        places.nth(chosen).map_or(0, |(place, _)| place)
    }

    fn yielded(&mut self, _thread: u32) {}
}
