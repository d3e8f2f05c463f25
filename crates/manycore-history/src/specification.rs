//! The behaviour of a collection that one thread uses. It has to explain the results of many
//! threads.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

use crate::history::Call;

/// The operations and results of a specification.
pub type CallOf<S> = Call<<S as Specification>::Operation, <S as Specification>::Result>;

/// A sequential object: a state, and operations that change it.
pub trait Specification {
    /// The state; its default is the one at the start.
    type State: Clone + Eq + Hash + Default;
    /// What can be called.
    type Operation: Clone + Debug;
    /// What that returns.
    type Result: Clone + PartialEq + Debug;

    /// Does the operation.
    fn apply(state: &mut Self::State, operation: &Self::Operation) -> Self::Result;

    /// The key of the operation, if operations on different keys do not affect each other. Then the
    /// state is that of one key.
    fn key(operation: &Self::Operation) -> Option<u64>;

    /// Whether a state can explain the later results of the history. It may wrongly return true;
    /// each false saves the search from a state. The default is true.
    fn may_go_on(_history: &[&CallOf<Self>]) -> impl Fn(&Self::State) -> bool
    where
        Self: Sized,
    {
        |_| true
    }
}

/// An operation on a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    /// Is it there?
    Contains(u64),
    /// Add it: was it not there?
    Insert(u64),
    /// Take it out: was it there?
    Remove(u64),
}

/// A set, key by key.
#[derive(Clone, Copy, Debug)]
pub struct Set;

impl Specification for Set {
    /// Whether the key is there.
    type State = bool;
    type Operation = SetOperation;
    type Result = bool;

    fn apply(state: &mut bool, operation: &SetOperation) -> bool {
        match operation {
            SetOperation::Contains(_) => *state,
            SetOperation::Insert(_) => !std::mem::replace(state, true),
            SetOperation::Remove(_) => std::mem::replace(state, false),
        }
    }

    fn key(operation: &SetOperation) -> Option<u64> {
        let (SetOperation::Contains(key) | SetOperation::Insert(key) | SetOperation::Remove(key)) =
            operation;
        Some(*key)
    }
}

/// The operations of a map from numbers to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapOperation {
    /// The key's value.
    Get(u64),
    /// Gives the key a value; returns the one before.
    Insert(u64, u64),
    /// Takes the key out; returns its value.
    Remove(u64),
}

/// A map, key by key.
#[derive(Clone, Copy, Debug)]
pub struct Map;

impl Specification for Map {
    /// The key's value.
    type State = Option<u64>;
    type Operation = MapOperation;
    type Result = Option<u64>;

    fn apply(state: &mut Option<u64>, operation: &MapOperation) -> Option<u64> {
        match operation {
            MapOperation::Get(_) => *state,
            MapOperation::Insert(_, value) => state.replace(*value),
            MapOperation::Remove(_) => state.take(),
        }
    }

    fn key(operation: &MapOperation) -> Option<u64> {
        let (MapOperation::Get(key) | MapOperation::Insert(key, _) | MapOperation::Remove(key)) =
            operation;
        Some(*key)
    }
}

/// An operation on a stack or a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceOperation {
    /// Puts something in; returns nothing.
    Push(u64),
    /// Takes one out, if there is one.
    Pop,
    /// Removes all values, in the order in which `Pop` would.
    TakeAll,
    /// Removes up to two values, one after the other. The checked history has a `Pop` for each
    /// value that was removed, or one `Pop` that finds nothing.
    PopSome,
    /// Takes back the thread's last push, if no other thread has read it. It is not part of a
    /// checked history: it is removed [together with the push](crate::taken_back::leave_out).
    TakeBack,
}

/// Where a sequence is taken from.
pub trait End {
    /// Takes one out.
    fn pop(sequence: &mut VecDeque<u64>) -> Option<u64>;

    /// Its contents, in the order of removal.
    fn in_order(sequence: &VecDeque<u64>) -> impl Iterator<Item = u64>;
}

/// Last in, first out.
#[derive(Clone, Copy, Debug)]
pub struct Last;

/// First in, first out.
#[derive(Clone, Copy, Debug)]
pub struct First;

impl End for Last {
    fn pop(sequence: &mut VecDeque<u64>) -> Option<u64> {
        sequence.pop_back()
    }

    fn in_order(sequence: &VecDeque<u64>) -> impl Iterator<Item = u64> {
        sequence.iter().rev().copied()
    }
}

impl End for First {
    fn pop(sequence: &mut VecDeque<u64>) -> Option<u64> {
        sequence.pop_front()
    }

    fn in_order(sequence: &VecDeque<u64>) -> impl Iterator<Item = u64> {
        sequence.iter().copied()
    }
}

/// A stack or a queue of numbers. Its state is one piece, so histories have to be short.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<E>(PhantomData<E>);

/// A stack.
pub type Stack = Sequence<Last>;

/// A queue.
pub type Queue = Sequence<First>;

impl<E: End> Specification for Sequence<E> {
    type State = VecDeque<u64>;
    type Operation = SequenceOperation;
    type Result = Vec<u64>;

    fn apply(state: &mut VecDeque<u64>, operation: &SequenceOperation) -> Vec<u64> {
        match operation {
            SequenceOperation::Push(value) => {
                state.push_back(*value);
                Vec::new()
            }
            SequenceOperation::Pop => E::pop(state).into_iter().collect(),
            SequenceOperation::TakeAll => std::iter::from_fn(|| E::pop(state)).collect(),
            // Left in by mistake: nothing explains what it returned.
            SequenceOperation::PopSome | SequenceOperation::TakeBack => vec![u64::MAX],
        }
    }

    fn key(_: &SequenceOperation) -> Option<u64> {
        None
    }

    /// If each value is pushed only once, the calls that removed the values show the values' order.
    /// Without that, two pushes at the same time are two states until one of the values is removed:
    /// n such pairs are 2^n states.
    fn may_go_on(history: &[&CallOf<Self>]) -> impl Fn(&VecDeque<u64>) -> bool {
        let mut taken: HashMap<u64, Taken> = HashMap::new();
        for (call, Call { called, returned, result, .. }) in history.iter().enumerate() {
            for (number, value) in result.iter().enumerate() {
                let by = Some((call, number));
                taken.insert(*value, Taken { after: *called, before: *returned, by });
            }
        }
        let mut pushed = HashSet::new();
        for call in history {
            // Nothing is known about a value that was pushed more than once.
            if let SequenceOperation::Push(value) = call.operation
                && !pushed.insert(value)
            {
                taken.insert(value, Taken::ANY_TIME);
            }
        }
        move |sequence| {
            let (mut latest, mut last) = (0, None);
            E::in_order(sequence).all(|value| {
                let this = taken.get(&value).unwrap_or(&Taken::NEVER);
                let by_one_call = |(call, number)| {
                    this.by.is_none_or(|(same, next)| same != call || number < next)
                };
                latest = latest.max(this.after);
                latest <= this.before
                    && std::mem::replace(&mut last, this.by).is_none_or(by_one_call)
            })
        }
    }
}

/// When a value is removed from a sequence, by which call, and as which of its results.
struct Taken {
    after: u64,
    before: u64,
    by: Option<(usize, usize)>,
}

impl Taken {
    const ANY_TIME: Self = Self { after: 0, before: u64::MAX, by: None };
    const NEVER: Self = Self { after: u64::MAX, before: u64::MAX, by: None };
}
