//! Routes: where the calls on a descriptor are executed.
//!
//! A route is a place, and knows nothing of the descriptor. When a descriptor is opened, a rule
//! over groups of CPUs chooses its route, which takes 64 bytes while nothing happens on it.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::cpu;

use super::affinity;
use super::cpu_worker::CpuWorker;
use super::inline_policy::PathPreference;
use super::settings::{Groups, Rule};
use super::shared_across_fork::Page;
use super::slab::{Slab, Zeroed};
use manycore_channel::stack::Stack;

/// As many routes as a process has at most.
pub const ROUTES_MAX: usize = 1 << 20;

/// One route.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct RouteState {
    /// For the mechanism `thread`: idle workers of this route.
    pub idle: Stack,
    /// The next unused route.
    below: AtomicU32,
    /// Which of the CPUs.
    at: AtomicU32,
    /// Whether its calls are moved, as measured.
    pub habit: PathPreference,
}

// SAFETY: it consists of an empty stack and numbers, all of which may be zero.
unsafe impl Zeroed for RouteState {}

/// All routes of a process.
#[derive(Debug)]
pub struct RouteTable {
    all: Slab<RouteState, ROUTES_MAX>,
    free: Stack,
    used: AtomicU32,
}

impl RouteTable {
    pub const fn new() -> Self {
        Self { all: Slab::new(), free: Stack::new(), used: AtomicU32::new(0) }
    }

    /// Opens a route on one of the CPUs; returns its number plus one.
    pub fn open(
        &self,
        groups: &Groups,
        rule: Rule,
        cpu_workers: &[CpuWorker],
        family: &Page,
    ) -> Option<u32> {
        let all = self.all.get()?;
        let number = self.free.pop(|number| &all[number as usize].below).or_else(|| {
            let more = |used| ((used as usize) < ROUTES_MAX).then_some(used + 1);
            // Relaxed, both: the number alone.
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        })?;
        let route = &all[number as usize];
        let (here, next) = (cpu::current() as u16, family.next_cpu());
        let at = choose(groups, rule, cpu_workers, (here, next), affinity::has);
        cpu_workers[at].routes.fetch_add(1, Ordering::Relaxed); // Relaxed: a number for the rules
        route.at.store(at as u32, Ordering::Relaxed); // Relaxed: the opener has the route, and passes it on
        route.habit.begin(&family.habit);
        Some(number + 1)
    }

    /// The route with this number plus one.
    pub fn get(&self, number: u32) -> Option<&RouteState> {
        let number = number.checked_sub(1)?;
        self.all.get()?.get(number as usize)
    }

    /// Which of the CPUs a route is on.
    pub fn at(route: &RouteState) -> usize {
        route.at.load(Ordering::Relaxed) as usize // Relaxed: as in `open`
    }

    /// The route may be used for another descriptor.
    pub fn close(&self, number: u32, cpu_workers: &[CpuWorker]) {
        if let (Some(route), Some(all)) = (self.get(number), self.all.get()) {
            cpu_workers[Self::at(route)].routes.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `open`
            self.free.push(number - 1, |number| &all[number as usize].below);
        }
    }

    /// All that were ever used.
    pub fn used(&self) -> &[RouteState] {
        let used = self.used.load(Ordering::Relaxed) as usize; // Relaxed: there is no other thread
        self.all.mapped().map_or(&[], |all| &all[..used])
    }
}

/// Chooses the CPU for a new route of a thread that runs on `here`. `turn` increases with each
/// call; `may` returns whether the process may use a CPU now. If no group has a permitted CPU, any
/// group will do.
fn choose(
    groups: &Groups,
    rule: Rule,
    cpu_workers: &[CpuWorker],
    (here, next): (u16, usize),
    may: impl Fn(u16) -> bool,
) -> usize {
    let all = 0..groups.len();
    let can = |at: &usize| may(groups.cpus()[*at]);
    // The CPUs of a range that may be used, beginning with the next one in the rotation.
    let in_turn = |range: Range<usize>| {
        let can_be_used = range.clone().filter(can).count();
        let first = next % can_be_used.max(1);
        range.clone().filter(can).skip(first).chain(range.filter(can).take(first))
    };
    let round = |group: usize| {
        let range = groups.range(group);
        let chosen = in_turn(range.clone()).next().or_else(|| in_turn(all.clone()).next());
        chosen.unwrap_or(range.start + next % range.len())
    };
    match rule {
        Rule::First => round(0),
        Rule::Own => {
            let has = |group: &usize| groups.cpus()[groups.range(*group)].contains(&here);
            round((0..groups.groups()).find(has).unwrap_or(0))
        }
        Rule::Spill(limit) => {
            let load = |at: &usize| cpu_workers[*at].routes.load(Ordering::Relaxed); // Relaxed: as in `open`
            // Among the CPUs with equally few routes, the first one from the turn's position on.
            let least = |range: Range<usize>| in_turn(range).min_by_key(load);
            let not_full = |at: &usize| load(at) < limit;
            let in_groups = (0..groups.groups()).map(|group| groups.range(group));
            in_groups
                .filter_map(least)
                .find(not_full)
                .or_else(|| least(all.clone()))
                .unwrap_or_else(|| round(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::shared_across_fork::SharedAcrossFork;

    fn two_groups() -> Groups {
        let mut groups = Groups::new();
        for group in [&[4, 5][..], &[6, 7, 8]] {
            assert!(group.iter().fold(groups.begin(), |done, cpu| done && groups.add(*cpu)));
        }
        groups
    }

    fn cpu_workers() -> Vec<CpuWorker> {
        // SAFETY: zero is a value of `CpuWorker`.
        (0..5).map(|_| unsafe { core::mem::zeroed() }).collect()
    }

    fn chosen(rule: Rule, routes: usize) -> Vec<usize> {
        let groups = two_groups();
        let cpu_workers = cpu_workers();
        for next in 0..routes {
            let at = choose(&groups, rule, &cpu_workers, (0, next), |_| true);
            cpu_workers[at].routes.fetch_add(1, Ordering::Relaxed);
        }
        cpu_workers.iter().map(|s| s.routes.load(Ordering::Relaxed) as usize).collect()
    }

    #[test]
    fn rules_choose_among_groups() {
        assert_eq!(chosen(Rule::First, 5), [3, 2, 0, 0, 0]);
        assert_eq!(chosen(Rule::Spill(2), 4), [2, 2, 0, 0, 0]);
        assert_eq!(chosen(Rule::Spill(2), 6), [2, 2, 0, 1, 1]);
        assert_eq!(chosen(Rule::Spill(1), 7), [2, 2, 1, 1, 1]);
    }

    #[test]
    fn own_is_the_group_of_the_thread_that_opens_it() {
        let at = |here, next| choose(&two_groups(), Rule::Own, &[], (here, next), |_| true);
        assert_eq!([at(4, 0), at(4, 1), at(5, 2)], [0, 1, 0]);
        assert_eq!([at(6, 0), at(8, 1), at(7, 2), at(7, 3)], [2, 3, 4, 2]);
        assert_eq!(at(9, 1), 1, "a CPU of no group has the first");
    }

    /// Processes without routes that start one after the other, like a server's children: only
    /// their turns differ.
    #[test]
    fn those_that_begin_together_begin_with_different_ones() {
        let cpu_workers = cpu_workers();
        let begins = |rule, next| choose(&two_groups(), rule, &cpu_workers, (4, next), |_| true);
        for rule in [Rule::First, Rule::Own, Rule::Spill(8)] {
            assert_eq!([0, 1, 2, 3].map(|next| begins(rule, next)), [0, 1, 0, 1], "{rule:?}");
        }
    }

    #[test]
    fn cpus_that_are_forbidden_by_now_serve_no_new_routes() {
        let cpu_workers = cpu_workers();
        let at = |rule, allowed: &[u16]| {
            let may = |cpu| allowed.contains(&cpu);
            [0, 1, 2].map(|next| choose(&two_groups(), rule, &cpu_workers, (6, next), may))
        };
        assert_eq!(at(Rule::First, &[5, 7]), [1; 3]);
        assert_eq!(at(Rule::Own, &[5, 6, 8]), [2, 4, 2]);
        assert_eq!(at(Rule::Spill(1), &[5, 7]), [1; 3]);
        assert_eq!(at(Rule::First, &[7, 8]), [3, 4, 3], "what is left elsewhere");
        assert_eq!(at(Rule::Spill(1), &[7]), [3; 3]);
        for rule in [Rule::First, Rule::Spill(1)] {
            assert_eq!(at(rule, &[9]), [0, 1, 0], "nothing is left: {rule:?}");
        }
    }

    #[test]
    fn a_closed_route_is_used_again() {
        let mut groups = Groups::new();
        assert!(groups.begin() && groups.add(0));
        // SAFETY: zero is a CPU worker (`Zeroed`).
        let cpu_workers = [unsafe { core::mem::zeroed::<CpuWorker>() }];
        let (all, family) = (RouteTable::new(), SharedAcrossFork::new());
        let open = || all.open(&groups, Rule::First, &cpu_workers, family.page()).unwrap();
        let (first, second) = (open(), open());
        assert_ne!(first, second);
        all.close(first, &cpu_workers);
        assert_eq!(open(), first);
        assert_eq!(cpu_workers[0].routes.load(Ordering::Relaxed), 2);
    }
}
