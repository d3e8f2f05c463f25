//! Lanes: where the calls on a descriptor are executed.
//!
//! A lane is a place, and knows nothing of the descriptor. It is chosen when the descriptor is opened, by a rule over groups of
//! CPUs, and takes 64 bytes while nothing happens on it.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::cpu;

use crate::bypass::Habit;
use crate::settings::{Groups, Rule};
use crate::slab::{Slab, Zeroed};
use crate::stack::Stack;
use crate::station::Station;

/// As many lanes as a process has at most.
pub const LANES_MAX: usize = 1 << 20;

/// One lane.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct LaneState {
    /// Of the mechanism `thread`: hands of this lane that have nothing to do.
    pub idle: Stack,
    /// Of unused lanes.
    below: AtomicU32,
    /// Which of the CPUs.
    at: AtomicU32,
    /// Whether its calls are moved, as measured.
    pub habit: Habit,
}

// SAFETY: an empty stack, and numbers.
unsafe impl Zeroed for LaneState {}

/// All lanes of a process.
#[derive(Debug)]
pub struct Lanes {
    all: Slab<LaneState, LANES_MAX>,
    free: Stack,
    used: AtomicU32,
    /// Counts up, for the rules that go round.
    turn: AtomicU32,
}

impl Lanes {
    pub const fn new() -> Self {
        Self {
            all: Slab::new(),
            free: Stack::new(),
            used: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// A new lane on one of the CPUs: its number plus one.
    pub fn open(&self, groups: &Groups, rule: Rule, stations: &[Station]) -> Option<u32> {
        let all = self.all.get()?;
        let number = self.free.pop(|number| &all[number as usize].below).or_else(|| {
            let more = |used| ((used as usize) < LANES_MAX).then_some(used + 1);
            // Relaxed, both: the number alone.
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        })?;
        let lane = &all[number as usize];
        let here = cpu::current() as u16;
        let at = choose(groups, rule, stations, here, || {
            self.turn.fetch_add(1, Ordering::Relaxed) as usize // Relaxed: any order will do
        });
        stations[at].lanes.fetch_add(1, Ordering::Relaxed); // Relaxed: a number for the rules
        lane.at.store(at as u32, Ordering::Relaxed); // Relaxed: the lane is its opener's, who passes it on
        lane.habit.begin(number);
        Some(number + 1)
    }

    /// The lane with this number plus one.
    pub fn get(&self, number: u32) -> Option<&LaneState> {
        let number = number.checked_sub(1)?;
        self.all.get()?.get(number as usize)
    }

    /// Which of the CPUs a lane is on.
    pub fn at(lane: &LaneState) -> usize {
        lane.at.load(Ordering::Relaxed) as usize // Relaxed: as in `open`
    }

    /// The lane may be used for another descriptor.
    pub fn close(&self, number: u32, stations: &[Station]) {
        if let (Some(lane), Some(all)) = (self.get(number), self.all.get()) {
            stations[Self::at(lane)].lanes.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `open`
            self.free.push(number - 1, |number| &all[number as usize].below);
        }
    }

    /// All that were ever used.
    pub fn used(&self) -> &[LaneState] {
        let used = self.used.load(Ordering::Relaxed) as usize; // Relaxed: nobody else is there
        self.all.mapped().map_or(&[], |all| &all[..used])
    }
}

/// Which of the CPUs serves a new lane of a thread that runs on `here`. `turn` counts up.
fn choose(
    groups: &Groups,
    rule: Rule,
    stations: &[Station],
    here: u16,
    turn: impl Fn() -> usize,
) -> usize {
    let round = |group: usize| {
        let range = groups.range(group);
        range.start + turn() % range.len()
    };
    match rule {
        Rule::First => round(0),
        Rule::Own => {
            let has = |group: &usize| groups.cpus()[groups.range(*group)].contains(&here);
            round((0..groups.groups()).find(has).unwrap_or(0))
        }
        Rule::Spill(limit) => {
            let load = |at: &usize| stations[*at].lanes.load(Ordering::Relaxed); // Relaxed: as in `open`
            let least = |range: core::ops::Range<usize>| range.min_by_key(load);
            let not_full = |at: &usize| load(at) < limit;
            let in_groups = (0..groups.groups()).map(|group| groups.range(group));
            in_groups
                .filter_map(least)
                .find(not_full)
                .or_else(|| least(0..groups.len()))
                .unwrap_or(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_groups() -> Groups {
        let mut groups = Groups::new();
        for group in [&[4, 5][..], &[6, 7, 8]] {
            assert!(group.iter().fold(groups.begin(), |done, cpu| done && groups.add(*cpu)));
        }
        groups
    }

    fn chosen(rule: Rule, lanes: usize) -> Vec<usize> {
        let groups = two_groups();
        // SAFETY: zero is a value of stations.
        let stations: Vec<Station> = (0..5).map(|_| unsafe { core::mem::zeroed() }).collect();
        let all = Lanes::new();
        for _ in 0..lanes {
            all.open(&groups, rule, &stations).unwrap();
        }
        stations.iter().map(|s| s.lanes.load(Ordering::Relaxed) as usize).collect()
    }

    #[test]
    fn rules_choose_among_groups() {
        assert_eq!(chosen(Rule::First, 5), [3, 2, 0, 0, 0]);
        assert_eq!(chosen(Rule::Spill(2), 4), [2, 2, 0, 0, 0]);
        assert_eq!(chosen(Rule::Spill(2), 6), [2, 2, 1, 1, 0]);
        assert_eq!(chosen(Rule::Spill(1), 7), [2, 2, 1, 1, 1]);
    }

    #[test]
    fn own_is_the_group_of_the_thread_that_opens_it() {
        let at = |here, turn| choose(&two_groups(), Rule::Own, &[], here, || turn);
        assert_eq!([at(4, 0), at(4, 1), at(5, 2)], [0, 1, 0]);
        assert_eq!([at(6, 0), at(8, 1), at(7, 2), at(7, 3)], [2, 3, 4, 2]);
        assert_eq!(at(9, 1), 1, "a CPU of no group has the first");
    }

    #[test]
    fn a_closed_lane_is_used_again() {
        let mut groups = Groups::new();
        assert!(groups.begin() && groups.add(0));
        // SAFETY: as above.
        let stations = [unsafe { core::mem::zeroed::<Station>() }];
        let all = Lanes::new();
        let open = || all.open(&groups, Rule::First, &stations).unwrap();
        let (first, second) = (open(), open());
        assert_ne!(first, second);
        all.close(first, &stations);
        assert_eq!(open(), first);
        assert_eq!(stations[0].lanes.load(Ordering::Relaxed), 2);
    }
}
