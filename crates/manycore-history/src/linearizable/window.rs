//! The part of a history that shows by itself that there is no order.

use std::collections::HashSet;

use super::CallOf;
use super::search::{Event, Search, events};
use crate::specification::Specification;

/// The shortest part before the first contradiction that contradicts itself, whatever came before. None if the history has
/// an order.
pub(super) fn smallest<'c, S: Specification>(
    calls: &'c [&'c CallOf<S>],
) -> Option<Vec<&'c CallOf<S>>> {
    let events = events::<S>(calls);
    let mut search = Search::<S>::new(calls);
    search.configurations.insert((S::State::default(), 0));
    let mut states = HashSet::from([S::State::default()]);
    let end = events.iter().position(|event| {
        let goes_on = search.pass(*event);
        states.extend(search.configurations.iter().map(|(state, _)| state.clone()));
        !goes_on
    })?;
    let before = |start: &usize| contradicts::<S>(calls, &events, *start, end, &states);
    let start = (0..=end).rev().find(before).unwrap_or(0);
    Some(part::<S>(calls, &events, start, end))
}

/// Whether the events from `start` to `end` are impossible from every state.
fn contradicts<S: Specification>(
    calls: &[&CallOf<S>],
    events: &[Event],
    start: usize,
    end: usize,
    states: &HashSet<S::State>,
) -> bool {
    let mut search = Search::<S>::new(calls);
    search.begin_anywhere(&events[..start], states)
        && !events[start..=end].iter().all(|event| search.pass(*event))
}

/// The operations that are under way at some event from `start` to `end`, in the order of their calls.
fn part<'c, S: Specification>(
    calls: &'c [&'c CallOf<S>],
    events: &[Event],
    start: usize,
    end: usize,
) -> Vec<&'c CallOf<S>> {
    let mut returned = HashSet::new();
    let mut called = Vec::new();
    for (at, event) in events[..=end].iter().enumerate() {
        match *event {
            Event::Call(i, _) => called.push(i),
            Event::Return(i, _) if at < start => _ = returned.insert(i),
            Event::Return(..) => {}
        }
    }
    called.into_iter().filter(|i| !returned.contains(i)).map(|i| calls[i]).collect()
}
