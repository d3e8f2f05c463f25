//! The search: from return to return, with all configurations that are possible.

use std::collections::HashSet;

use super::CallOf;
use crate::specification::Specification;

/// Operations that may be under way at a time: bits of a configuration.
const SLOTS: usize = 128;

/// Configurations that are looked at for one return, before it is given up.
const CONFIGURATIONS_MAX: usize = 4_000_000;

/// A state, and a bit for each operation under way that has happened.
pub(super) type Configuration<S> = (<S as Specification>::State, u128);

/// Where the history goes on: the number of an operation, and the place of its bit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Call(usize, usize),
    Return(usize, usize),
}

/// Calls and returns in their order. At the same moment, calls come first.
pub(super) fn events<S: Specification>(calls: &[&CallOf<S>]) -> Vec<Event> {
    let mut moments: Vec<_> = (calls.iter().enumerate())
        .flat_map(|(i, call)| [(call.called, false, i), (call.returned, true, i)])
        .collect();
    moments.sort_unstable();
    let mut slots = vec![0; calls.len()];
    let mut free: Vec<_> = (0..SLOTS).rev().collect();
    let event = |(_, returns, i): (u64, bool, usize)| {
        if returns {
            free.push(slots[i]);
            return Event::Return(i, slots[i]);
        }
        slots[i] = free.pop().expect("no more than 128 operations on a key at a time");
        Event::Call(i, slots[i])
    };
    moments.into_iter().map(event).collect()
}

/// A search at some place of a history.
pub(super) struct Search<'c, S: Specification> {
    calls: &'c [&'c CallOf<S>],
    /// The operations under way, by their bits.
    under_way: [Option<usize>; SLOTS],
    pub(super) configurations: HashSet<Configuration<S>>,
}

impl<'c, S: Specification> Search<'c, S> {
    pub(super) fn new(calls: &'c [&'c CallOf<S>]) -> Self {
        Self { calls, under_way: [None; SLOTS], configurations: HashSet::new() }
    }

    /// Begins with what is under way after some events, and any of these states, with any of those operations done already;
    /// says whether that is few enough.
    pub(super) fn begin_anywhere(&mut self, before: &[Event], states: &HashSet<S::State>) -> bool {
        for event in before {
            match *event {
                Event::Call(i, slot) => self.under_way[slot] = Some(i),
                Event::Return(_, slot) => self.under_way[slot] = None,
            }
        }
        let open: Vec<_> = (0..SLOTS).filter(|slot| self.under_way[*slot].is_some()).collect();
        if open.len() > 10 || states.len() << open.len() > 1 << 16 {
            return false;
        }
        for chosen in 0_u32..1 << open.len() {
            let bits = open.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
            let done = bits.fold(0, |done, (_, slot)| done | 1 << slot);
            self.configurations.extend(states.iter().map(|state| (state.clone(), done)));
        }
        true
    }

    /// Goes past an event; says whether a configuration is left.
    pub(super) fn pass(&mut self, event: Event) -> bool {
        match event {
            Event::Call(i, slot) => self.under_way[slot] = Some(i),
            Event::Return(_, slot) => {
                self.configurations = self.after_return(slot);
                self.under_way[slot] = None;
            }
        }
        !self.configurations.is_empty()
    }

    /// The configurations in which the operation with this bit has happened; the bit is cleared.
    fn after_return(&mut self, returns: usize) -> HashSet<Configuration<S>> {
        let mut after = HashSet::new();
        let mut seen = std::mem::take(&mut self.configurations);
        let mut open: Vec<_> = seen.iter().cloned().collect();
        while let Some((state, done)) = open.pop() {
            if done >> returns & 1 == 1 {
                after.insert((state, done & !(1 << returns)));
                continue;
            }
            for (slot, call) in self.under_way.iter().enumerate() {
                let Some(call) = call.filter(|_| done >> slot & 1 == 0) else { continue };
                let (call, mut state) = (self.calls[call], state.clone());
                if S::apply(&mut state, &call.operation) == call.result {
                    let next = (state, done | 1 << slot);
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        open.push(next);
                    }
                }
            }
            assert!(
                seen.len() < CONFIGURATIONS_MAX,
                "too many operations at a time: use more keys"
            );
        }
        after
    }
}
