//! The search: from return to return, with all configurations that are possible.

use std::collections::HashSet;

use crate::specification::{CallOf, Specification};

/// The largest number of operations that may be open at the same time: bits of a configuration.
const SLOTS: usize = 128;

/// The number of configurations for one return with which the search for an order gives up, ...
pub(super) const MANY: usize = 4_000_000;
/// ... and with which the searches for the shortest contradiction give up; there is one such search
/// for each event.
pub(super) const FEW: usize = 1 << 16;

/// A state, and a bit for each open operation that has taken effect.
pub(super) type Configuration<S> = (<S as Specification>::State, u128);

/// An event of the history: the number of an operation, and the index of its bit.
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
    most: usize,
}

/// There are more configurations than the search keeps.
#[derive(Debug)]
pub(super) struct TooMany;

impl<'c, S: Specification> Search<'c, S> {
    /// A search that gives up at more than `most` configurations for one return.
    pub(super) fn new(calls: &'c [&'c CallOf<S>], most: usize) -> Self {
        Self { calls, under_way: [None; SLOTS], configurations: HashSet::new(), most }
    }

    /// Begins with the operations that are open after some events, in any of these states, with any
    /// of those operations done already; returns false if that is too many configurations.
    pub(super) fn begin_anywhere(&mut self, before: &[Event], states: &HashSet<S::State>) -> bool {
        for event in before {
            match *event {
                Event::Call(i, slot) => self.under_way[slot] = Some(i),
                Event::Return(_, slot) => self.under_way[slot] = None,
            }
        }
        let open: Vec<_> = (0..SLOTS).filter(|slot| self.under_way[*slot].is_some()).collect();
        if open.len() > 10 || states.len() << open.len() > self.most {
            return false;
        }
        for chosen in 0_u32..1 << open.len() {
            let bits = open.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
            let done = bits.fold(0, |done, (_, slot)| done | 1 << slot);
            self.configurations.extend(states.iter().map(|state| (state.clone(), done)));
        }
        true
    }

    /// Passes an event, with the states that are possible after it; returns whether a configuration
    /// is left.
    pub(super) fn pass(
        &mut self,
        event: Event,
        may_go_on: &impl Fn(&S::State) -> bool,
    ) -> Result<bool, TooMany> {
        match event {
            Event::Call(i, slot) => self.under_way[slot] = Some(i),
            Event::Return(_, slot) => {
                self.configurations = self.after_return(slot, may_go_on)?;
                self.under_way[slot] = None;
            }
        }
        Ok(!self.configurations.is_empty())
    }

    /// The configurations in which the operation with this bit has happened; the bit is cleared.
    fn after_return(
        &mut self,
        returns: usize,
        may_go_on: &impl Fn(&S::State) -> bool,
    ) -> Result<HashSet<Configuration<S>>, TooMany> {
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
                if S::apply(&mut state, &call.operation) == call.result && may_go_on(&state) {
                    let next = (state, done | 1 << slot);
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        open.push(next);
                    }
                }
            }
            if seen.len() > self.most {
                return Err(TooMany);
            }
        }
        Ok(after)
    }
}
