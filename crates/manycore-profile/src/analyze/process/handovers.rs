//! The condition variables that serve as the waiting room of a lock that the program has made of a
//! mutex and these variables.
//!
//! [`HandOvers`](manycore_stats::HandOvers) and the counting code document the counts and their
//! meaning.

use std::collections::HashMap;

use crate::analyze::names::modules::Modules;
use crate::analyze::process::decode::Recorded;
use manycore_stats::Kind;

/// Fewer hand-overs than this are no habit.
const HANDED_MIN: u64 = 8;
/// At least this share of the actions of let-in threads has to be hand-overs. A barrier of many
/// threads, whose last one wakes the others, reaches a half at most, and queues reach little.
const HANDED_SHARE: f64 = 0.9;

/// At least this share of the threads that handed over must have been let in by a thread that had
/// waited at the same place, as far as that is known. A requesting and an answering thread never
/// meet this condition.
const ALIKE_SHARE: f64 = 0.5;

/// The observations of the condition variables of a class.
#[derive(Default)]
struct Seen {
    handed: u64,
    returned: u64,
    alike: u64,
    unlike: u64,
}

impl Seen {
    fn is_lock(&self) -> bool {
        let share = |part: u64, rest: u64| part as f64 / (part + rest) as f64;
        self.handed >= HANDED_MIN
            && share(self.handed, self.returned) >= HANDED_SHARE
            && (self.unlike == 0 || share(self.alike, self.unlike) >= ALIKE_SHARE)
    }
}

/// Says of condition variables that they are locks.
pub(crate) fn recognise(recorded: &mut [Recorded], modules: &Modules) {
    let mut classes: HashMap<Class, Seen> = HashMap::new();
    for one in recorded.iter().filter(|one| is_candidate(one)) {
        let seen = classes.entry(Class::of(one, modules)).or_default();
        seen.handed += one.tally.handed;
        seen.returned += one.tally.returned;
        seen.alike += one.tally.alike;
        seen.unlike += one.tally.unlike;
    }
    for one in recorded.iter_mut().filter(|one| is_candidate(one)) {
        if classes[&Class::of(one, modules)].is_lock() {
            one.kind = Kind::Made;
        }
    }
}

/// Whether a record can be judged. The record of objects without one of their own cannot.
fn is_candidate(one: &Recorded) -> bool {
    one.kind == Kind::Cond && !one.is_rest
}

/// The unit of judgement: one variable, or all variables that were created at one place. An
/// interpreter has a condition variable for each thread.
#[derive(PartialEq, Eq, Hash)]
enum Class {
    Variable(u64),
    Place(u32),
}

impl Class {
    fn of(one: &Recorded, modules: &Modules) -> Self {
        if modules.find(one.address, one.epoch).is_some() {
            Self::Variable(one.address)
        } else {
            Self::Place(one.stack)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::names::modules::NOW;
    use crate::analyze::process::decode::Tally;

    fn condition(stack: u32, handed: u64, returned: u64) -> Recorded {
        Recorded {
            number: 1,
            kind: Kind::Cond,
            is_rest: false,
            objects: 1,
            address: 0x1000,
            epoch: NOW,
            is_crowd: false,
            stack,
            is_initialised: true,
            tally: Tally { handed, returned, ..Tally::default() },
            waiters: Vec::new(),
        }
    }

    fn kinds(mut recorded: Vec<Recorded>) -> Vec<Kind> {
        recognise(&mut recorded, &Modules::default());
        recorded.iter().map(|one| one.kind).collect()
    }

    #[test]
    fn who_hands_over_has_a_lock() {
        let [lock, queue, rare] =
            kinds(vec![condition(1, 90, 1), condition(2, 50, 40), condition(3, HANDED_MIN - 1, 0)])
                [..]
        else {
            panic!()
        };
        assert_eq!((lock, queue, rare), (Kind::Made, Kind::Cond, Kind::Cond));
    }

    #[test]
    fn conditions_of_one_place_are_judged_as_one() {
        let each = || condition(1, HANDED_MIN / 4, 0);
        assert_eq!(kinds((0..4).map(|_| each()).collect()), [Kind::Made; 4]);
        let rest = Recorded { is_rest: true, ..condition(1, 100, 0) };
        assert_eq!(kinds(vec![rest]), [Kind::Cond]);
    }
}
