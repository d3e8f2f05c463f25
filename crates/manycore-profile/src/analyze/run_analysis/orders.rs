//! In which order locks were taken, and where the orders contradict each other.
//!
//! A circle is claimed for *objects*, not for rows of the profile. Two locks of one row, such as
//! two buckets of a table, may be taken one with the other held; that is correct as long as all
//! threads take them in one direction. So a circle is claimed only if
//!
//! - each of its locks was one object throughout (a record that served several objects in turn
//!   shows no order),
//! - no two of its steps were always taken with a lock held in common, exclusively, because then
//!   only one of the two can happen at a time,
//! - where two steps meet, at least one of them has the lock exclusively: readers do not exclude
//!   each other (if only a writer between them would block them, nothing is claimed),
//! - the steps were not all taken by one thread,
//!
//! and attempts that give up, at once or after a time, make no order. Two assumptions remain: that
//! threads may take these steps at the same time; and that a lock is released by the thread that
//! took it, or that another releasing thread is visible as such.

use std::collections::{HashMap, HashSet};

use crate::analyze::names::symbols::{StackId, Symbols};
use crate::analyze::process::ProcessStats;
use crate::profile::{Cycle, Order};

use crate::analyze::groups::Rows;
use crate::analyze::process::noted::{Noted, Taken};

/// This many orders are kept, in addition to those of circles.
const KEPT: usize = 200;
/// This many circles are kept.
const CYCLES_KEPT: usize = 20;
/// Circles of more locks are not looked for.
const LOCKS_MAX: usize = 4;
/// The most steps that the search for circles takes in a process.
const STEPS_MAX: usize = 1_000_000;

/// All orders, the most frequent first, and the circles among them.
pub fn of(stats: &[ProcessStats], rows: &Rows, symbols: &mut Symbols) -> (Vec<Order>, Vec<Cycle>) {
    let mut sums = Sums::default();
    let mut cycles: Vec<Cycle> = Vec::new();
    let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
    for (process, one) in stats.iter().enumerate() {
        let places: Vec<Option<usize>> = one
            .noted
            .orders
            .iter()
            .map(|taken| sums.add(process, one, taken, rows, symbols))
            .collect();
        for circle in circles(one) {
            let steps: Option<Vec<usize>> = circle.iter().map(|step| places[*step]).collect();
            let Some(steps) = steps else { continue };
            let end = Ending::of(&circle, one);
            // The thread that holds the lock may wait for this one until a third thread releases
            // it.
            if steps.len() == 1 && end == Ending::Open {
                continue;
            }
            let mut sorted = steps.clone();
            sorted.sort_unstable();
            let place = *known.entry(sorted).or_insert_with(|| {
                cycles.push(Cycle { orders: steps, deadlocked: false, gives_up: false });
                cycles.len() - 1
            });
            cycles[place].deadlocked |= end == Ending::Deadlocked;
            cycles[place].gives_up |= end == Ending::GivesUp;
        }
    }
    // Short circles are found more often than long ones, and easier understood.
    cycles.sort_by_key(|cycle| (!cycle.deadlocked, !cycle.gives_up, cycle.orders.len()));
    cycles.truncate(CYCLES_KEPT);
    sorted(sums.orders, cycles)
}

/// Orders of the same rows and places, added up.
#[derive(Default)]
struct Sums {
    orders: Vec<Order>,
    places: HashMap<(usize, usize, StackId, StackId), usize>,
}

impl Sums {
    /// The index of the order's sum; `None` if one of its locks is not in the profile.
    fn add(
        &mut self,
        process: usize,
        one: &ProcessStats,
        taken: &Taken,
        rows: &Rows,
        symbols: &mut Symbols,
    ) -> Option<usize> {
        let held = *rows.get(&(process, taken.held))?;
        let wanted = *rows.get(&(process, taken.wanted))?;
        let held_stack = symbols.stack(one.beside(taken.stack, &[taken.held_caller]), &one.modules);
        let wanted_stack = symbols.stack(one.stack(taken.stack), &one.modules);
        let orders = &mut self.orders;
        let place =
            *self.places.entry((held, wanted, held_stack, wanted_stack)).or_insert_with(|| {
                orders.push(Order {
                    held,
                    wanted,
                    seen: 0,
                    held_frames: symbols.frames(held_stack),
                    wanted_frames: symbols.frames(wanted_stack),
                });
                orders.len() - 1
            });
        self.orders[place].seen += taken.seen;
        Some(place)
    }
}

/// The orders that are kept, the most frequent first, and the circles with the orders' new indices.
fn sorted(orders: Vec<Order>, mut cycles: Vec<Cycle>) -> (Vec<Order>, Vec<Cycle>) {
    let in_circles: HashSet<usize> =
        cycles.iter().flat_map(|cycle| &cycle.orders).copied().collect();
    let mut by_count: Vec<usize> = (0..orders.len()).collect();
    by_count.sort_by(|a, b| {
        let rank = |place: usize| (orders[place].seen, !orders[place].held, !orders[place].wanted);
        rank(*b).cmp(&rank(*a)).then(a.cmp(b))
    });
    let mut plain = 0;
    by_count.retain(|place| {
        plain += usize::from(!in_circles.contains(place));
        in_circles.contains(place) || plain <= KEPT
    });
    let new: HashMap<usize, usize> =
        by_count.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let kept = by_count.iter().map(|place| orders[*place].clone()).collect();
    cycles.iter_mut().flat_map(|cycle| &mut cycle.orders).for_each(|step| *step = new[step]);
    (kept, cycles)
}

/// How a circle stood at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// A step had no thread that waited.
    Open,
    /// Threads waited for each other, but one of them had a deadline.
    GivesUp,
    /// Threads waited for each other for ever.
    Deadlocked,
}

impl Ending {
    /// The state of a circle. It is closed if for each step a thread has taken the one lock and
    /// waits for the other.
    fn of(circle: &[usize], one: &ProcessStats) -> Self {
        let Noted { orders, stuck, .. } = &one.noted;
        let steps = circle.iter().map(|step| &orders[*step]);
        let ends = steps.map(|step| {
            let mut waiting = stuck
                .iter()
                .filter(|thread| thread.wanted == step.wanted && thread.held.contains(&step.held))
                .peekable();
            match (waiting.peek().is_some(), waiting.any(|thread| !thread.gives_up)) {
                (_, true) => Self::Deadlocked,
                (true, false) => Self::GivesUp,
                (false, false) => Self::Open,
            }
        });
        let ends: Vec<Self> = ends.collect();
        [Self::Open, Self::GivesUp]
            .into_iter()
            .find(|end| ends.contains(end))
            .unwrap_or(Self::Deadlocked)
    }
}

/// Circles among the orders of a process, by the orders' indices.
fn circles(one: &ProcessStats) -> Vec<Vec<usize>> {
    let single: HashSet<u32> = one
        .recorded
        .iter()
        .filter(|recorded| recorded.objects == 1 && !recorded.is_rest)
        .map(|recorded| recorded.number)
        .collect();
    let usable = |taken: &Taken| single.contains(&taken.held) && single.contains(&taken.wanted);
    let mut from: HashMap<u32, Vec<usize>> = HashMap::new();
    let orders = &one.noted.orders;
    for (place, taken) in orders.iter().enumerate().filter(|(_, taken)| usable(taken)) {
        from.entry(taken.held).or_default().push(place);
    }
    let mut search = Search { orders, from, path: Vec::new(), found: Vec::new(), left: STEPS_MAX };
    for (place, taken) in orders.iter().enumerate().filter(|(_, taken)| usable(taken)) {
        search.path = vec![place];
        if taken.held == taken.wanted {
            search.found.push(search.path.clone());
        } else {
            search.go_on();
        }
    }
    search.found
}

struct Search<'a> {
    orders: &'a [Taken],
    /// Orders by the lock that is held.
    from: HashMap<u32, Vec<usize>>,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
    left: usize,
}

impl Search<'_> {
    /// Follows all steps from the path's end. The first step of a circle is the one with the lowest
    /// index, so that each circle is found once.
    fn go_on(&mut self) {
        let (first, last) = (self.path[0], self.path[self.path.len() - 1]);
        let next = self.from.get(&self.orders[last].wanted).cloned().unwrap_or_default();
        for step in next {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            if step <= first || !self.fits(step) {
                continue;
            }
            self.path.push(step);
            if self.orders[step].wanted == self.orders[first].held {
                if meet(&self.orders[step], &self.orders[first]) && !self.is_of_one_thread() {
                    self.found.push(self.path.clone());
                }
            } else if self.path.len() < LOCKS_MAX {
                self.go_on();
            }
            self.path.pop();
        }
    }

    /// Whether a step can happen at the same time as the steps of the path, and waits for the last
    /// step's thread.
    fn fits(&self, step: usize) -> bool {
        let step = &self.orders[step];
        let excluded = |other: &usize| {
            exclusively(&self.orders[*other]).any(|lock| exclusively(step).any(|mine| mine == lock))
        };
        let passed = |other: &usize| self.orders[*other].held == step.held;
        let last = &self.orders[self.path[self.path.len() - 1]];
        meet(last, step) && !self.path.iter().any(|other| excluded(other) || passed(other))
    }

    fn is_of_one_thread(&self) -> bool {
        let thread_entry = self.orders[self.path[0]].thread_entry;
        thread_entry.is_some()
            && self.path.iter().all(|step| self.orders[*step].thread_entry == thread_entry)
    }
}

/// Whether a thread that wants the lock in this way has to wait for a thread that holds it in the
/// other way.
fn meet(wants: &Taken, holds: &Taken) -> bool {
    !(wants.wanted_shared && holds.held_shared)
}

/// The locks that a thread holds exclusively while it takes the step.
fn exclusively(taken: &Taken) -> impl Iterator<Item = u32> + '_ {
    let held = Some(taken.held).filter(|_| !taken.held_shared);
    held.into_iter().chain(taken.guards.iter().copied())
}
