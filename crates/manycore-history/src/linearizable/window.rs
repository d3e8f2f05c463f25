//! The part of a history that shows by itself that there is no order.

use std::collections::HashSet;

use super::search::{Event, FEW, MANY, Search, TooMany, events};
use crate::specification::{CallOf, Specification};

/// Whether the history has an order.
///
/// # Panics
///
/// If there are too many configurations to say.
pub(super) fn has_order<S: Specification>(calls: &[&CallOf<S>]) -> bool {
    let may_go_on = S::may_go_on(calls);
    let mut search = Search::<S>::new(calls, MANY);
    search.configurations.insert((S::State::default(), 0));
    let mut pass = |event| search.pass(event, &may_go_on);
    (events::<S>(calls).into_iter())
        .all(|event| pass(event).expect("too many operations at a time: use more keys"))
}

/// The shortest part before the first contradiction that contradicts itself, whatever is before and
/// after it. If the search would take too many configurations, it is the whole history.
pub(super) fn smallest<'c, S: Specification>(calls: &'c [&'c CallOf<S>]) -> Vec<&'c CallOf<S>> {
    let events = events::<S>(calls);
    let mut search = Search::<S>::new(calls, FEW);
    search.configurations.insert((S::State::default(), 0));
    let mut states = HashSet::from([S::State::default()]);
    let mut end = events.len() - 1;
    for (at, event) in events.iter().enumerate() {
        match search.pass(*event, &|_| true) {
            Ok(true) => {}
            Ok(false) => {
                end = at;
                break;
            }
            Err(TooMany) => return calls.to_vec(),
        }
        states.extend(search.configurations.iter().map(|(state, _)| state.clone()));
    }
    let before = |start: &usize| contradicts::<S>(calls, &events, *start, end, &states);
    let start = (0..=end).rev().find(before).unwrap_or(0);
    part::<S>(calls, &events, start, end)
}

/// Whether the events from `start` to `end` are impossible from every state.
fn contradicts<S: Specification>(
    calls: &[&CallOf<S>],
    events: &[Event],
    start: usize,
    end: usize,
    states: &HashSet<S::State>,
) -> bool {
    let mut search = Search::<S>::new(calls, FEW);
    if !search.begin_anywhere(&events[..start], states) {
        return false;
    }
    let mut pass = |event: &Event| search.pass(*event, &|_| true).unwrap_or(true);
    !events[start..=end].iter().all(&mut pass)
}

/// The operations that are open at some event from `start` to `end`, in the order of their calls.
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
