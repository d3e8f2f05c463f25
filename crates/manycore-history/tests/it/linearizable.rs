//! Histories that are linearizable, histories that are not, and the messages about the latter.

use manycore_history::history::Call;
use manycore_history::linearizable::check;
use manycore_history::specification::{
    CallOf, Map, MapOperation, Queue, SequenceOperation, Set, SetOperation, Specification, Stack,
};
use manycore_history::taken_back::leave_out;
use proptest::prelude::*;

/// Calls, each by a thread of its own: operation, result, from, to.
fn history<O, R>(calls: impl IntoIterator<Item = (O, R, u64, u64)>) -> Vec<Call<O, R>> {
    let call = |((operation, result, called, returned), thread)| Call {
        thread,
        operation,
        result,
        called,
        returned,
    };
    calls.into_iter().zip(0..).map(call).collect()
}

use MapOperation::Get;
use SequenceOperation::{Pop, Push, TakeAll, TakeBack};
use SetOperation::{Contains, Insert, Remove};

#[test]
fn an_operation_may_happen_at_any_time_between() {
    // The reader overlaps both, and may see either.
    for seen in [true, false] {
        let calls = [(Insert(1), true, 0, 10), (Contains(1), seen, 5, 20)];
        assert_eq!(check::<Set>(&history(calls)), Ok(()));
    }
    let calls = [(Insert(1), true, 0, 9), (Remove(1), true, 1, 8), (Insert(1), true, 2, 7)];
    assert_eq!(check::<Set>(&history(calls)), Ok(()));
}

#[test]
fn a_finished_insertion_is_seen() {
    let calls = [(Insert(1), true, 0, 3), (Contains(1), false, 4, 6)];
    let violation = check::<Set>(&history(calls)).unwrap_err();
    assert_eq!(violation.key, Some(1));
    let text = [
        "key 1: no order of these operations explains all their results\n",
        "  thread  0  Insert(1) = true     ||\n",
        "  thread  1  Contains(1) = false    ||\n",
    ];
    assert_eq!(violation.to_string(), text.concat());
}

#[test]
fn two_cannot_insert_the_same() {
    let calls = [(Insert(1), true, 0, 10), (Insert(1), true, 5, 20)];
    assert!(check::<Set>(&history(calls)).is_err());
}

#[test]
fn what_was_seen_stays_seen() {
    // Both readers overlap the insertion, but the second begins after the first has seen it.
    let calls = [(Insert(1), true, 0, 9), (Contains(1), true, 1, 2), (Contains(1), false, 3, 4)];
    assert!(check::<Set>(&history(calls)).is_err());
    let calls = [(Insert(1), true, 0, 9), (Contains(1), false, 1, 2), (Contains(1), true, 3, 4)];
    assert_eq!(check::<Set>(&history(calls)), Ok(()));
}

#[test]
fn an_old_value_does_not_come_back() {
    let insert = MapOperation::Insert;
    let calls = [
        (insert(1, 10), None, 0, 1),
        (insert(1, 11), Some(10), 2, 3),
        (Get(1), Some(11), 4, 5),
        (Get(1), Some(10), 6, 7),
    ];
    let violation = check::<Map>(&history(calls)).unwrap_err();
    let texts: Vec<_> = violation.window.iter().map(|row| row.text.as_str()).collect();
    assert_eq!(
        texts,
        ["Get(1) = Some(11)", "Get(1) = Some(10)"],
        "what came before does not matter"
    );
}

#[test]
fn the_window_is_small() {
    // A long good history of one key, with a mistake near its end, among other keys.
    let mut calls = Vec::new();
    for at in 0..1000 {
        calls.push((Insert(1), true, 40 * at, 40 * at + 25));
        calls.push((Remove(1), true, 40 * at + 30, 40 * at + 35));
        calls.push((Insert(2), at == 0, 40 * at + 1, 40 * at + 36));
    }
    calls.push((Contains(1), true, 100_000, 100_001));
    calls.push((Insert(1), true, 100_002, 100_003));
    let violation = check::<Set>(&history(calls)).unwrap_err();
    assert_eq!(violation.window.len(), 2, "{violation}");
}

#[test]
fn sequences_keep_their_order() {
    let three = |result| {
        let push = |value, at| (Push(value), vec![], at, at + 1);
        history([push(1, 0), push(2, 2), (TakeAll, result, 4, 5), (Pop, vec![], 6, 7)])
    };
    assert_eq!(check::<Queue>(&three(vec![1, 2])), Ok(()));
    assert!(check::<Stack>(&three(vec![1, 2])).is_err());
    assert_eq!(check::<Stack>(&three(vec![2, 1])), Ok(()));
    assert!(check::<Queue>(&three(vec![2, 1])).is_err());
    assert!(check::<Queue>(&three(vec![1])).is_err());
}

/// Thirty times two simultaneous pushes: 2^30 states before the first value is removed.
#[test]
fn long_sequences_are_decided() {
    let pushes = (0..60).map(|value| (Push(value), vec![], value / 2 * 10, value / 2 * 10 + 5));
    let pops = |order: fn(u64) -> u64| {
        (0..60).map(move |at| (Pop, vec![order(at)], 1000 + 10 * at, 1005 + 10 * at))
    };
    let with = |order| history(pushes.clone().chain(pops(order)));
    assert_eq!(check::<Queue>(&with(|at| at ^ 1)), Ok(()), "each pair in the other order");
    assert_eq!(check::<Stack>(&with(|at| 59 - at)), Ok(()));
    assert!(check::<Stack>(&with(|at| at)).is_err());
    assert!(check::<Queue>(&with(|at| at ^ 2)).is_err(), "pairs that change places");
    let all = |values: &[u64]| (TakeAll, values.to_vec(), 1000, 1001);
    let values: Vec<_> = (0..60).map(|value| value ^ 1).collect();
    assert_eq!(check::<Queue>(&history(pushes.clone().chain([all(&values)]))), Ok(()));
}

#[test]
fn what_was_taken_back_was_the_last() {
    let call = |(operation, result): (_, &[u64])| Call {
        thread: 0,
        operation,
        result: result.to_vec(),
        called: 0,
        returned: 1,
    };
    let left = |calls: &[(SequenceOperation, &[u64])]| {
        let left = leave_out(calls.iter().copied().map(call).collect());
        left.map(|calls| calls.into_iter().map(|call| call.operation).collect::<Vec<_>>())
    };
    let pushes: [(_, &[u64]); 2] = [(Push(1), &[]), (Push(2), &[])];
    let with = |rest: &[(SequenceOperation, &'static [u64])]| left(&[&pushes, rest].concat());
    assert_eq!(with(&[(TakeBack, &[2]), (Pop, &[1])]), Ok(vec![Push(1), Pop]));
    assert_eq!(with(&[(TakeBack, &[2]), (TakeBack, &[1]), (TakeBack, &[])]), Ok(vec![]));
    assert_eq!(with(&[(TakeBack, &[])]), Ok(vec![Push(1), Push(2)]), "somebody has looked");
    assert!(with(&[(TakeBack, &[1])]).is_err(), "not the last");
    assert!(with(&[(TakeBack, &[2]), (TakeBack, &[2])]).is_err(), "twice");
    assert!(with(&[(TakeBack, &[3])]).is_err(), "somebody else's");
    assert!(with(&[(TakeBack, &[2, 1])]).is_err(), "two at a time");
}

#[test]
fn nobody_pops_what_was_taken_back() {
    let calls = [(Push(1), vec![], 0, 1), (TakeBack, vec![1], 2, 3), (Pop, vec![1], 2, 3)];
    let calls = calls.map(|call| Call { thread: 0, ..history([call]).remove(0) });
    assert!(check::<Queue>(&leave_out(calls.to_vec()).unwrap()).is_err());
}

/// Tries all orders.
fn brute_force<S: Specification>(calls: &[CallOf<S>]) -> bool {
    fn goes_on<S: Specification>(state: &S::State, calls: &[CallOf<S>], left: u32) -> bool {
        let rest = || (0..calls.len()).filter(|i| left >> i & 1 == 1);
        left == 0
            || rest().any(|i| {
                let mut state = state.clone();
                rest().all(|other| calls[other].returned >= calls[i].called)
                    && S::apply(&mut state, &calls[i].operation) == calls[i].result
                    && goes_on::<S>(&state, calls, left & !(1 << i))
            })
    }
    goes_on::<S>(&S::State::default(), calls, (1 << calls.len()) - 1)
}

/// Up to seven calls: an operation, a result, a begin and a length.
fn calls<O: Clone + std::fmt::Debug + 'static, R: Clone + std::fmt::Debug + 'static>(
    call: impl Strategy<Value = (O, R)>,
) -> impl Strategy<Value = Vec<Call<O, R>>> {
    let timed = (call, 0..12_u64, 1..8_u64);
    prop::collection::vec(timed, 1..8).prop_map(|calls| {
        history(calls.into_iter().map(|((o, r), at, length)| (o, r, at, at + length)))
    })
}

fn set_call() -> impl Strategy<Value = (SetOperation, bool)> {
    let operation = (0..3, 0..2_u64).prop_map(|(kind, key)| match kind {
        0 => Contains(key),
        1 => Insert(key),
        _ => Remove(key),
    });
    (operation, any::<bool>())
}

fn map_call() -> impl Strategy<Value = (MapOperation, Option<u64>)> {
    let operation = (0..3, 1..3_u64).prop_map(|(kind, value)| match kind {
        0 => Get(0),
        1 => MapOperation::Insert(0, value),
        _ => MapOperation::Remove(0),
    });
    (operation, prop::option::of(1..3_u64))
}

fn sequence_call() -> impl Strategy<Value = (SequenceOperation, Vec<u64>)> {
    prop_oneof![
        (1..5_u64).prop_map(|value| (Push(value), vec![])),
        prop::collection::vec(1..5_u64, 0..2).prop_map(|result| (Pop, result)),
        prop::collection::vec(1..5_u64, 0..3).prop_map(|result| (TakeAll, result)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn sets_as_by_brute_force(calls in calls(set_call())) {
        let possible = (0..2).all(|key| {
            let on_key = |call: &&Call<_, _>| Set::key(&call.operation) == Some(key);
            brute_force::<Set>(&calls.iter().filter(on_key).cloned().collect::<Vec<_>>())
        });
        prop_assert_eq!(check::<Set>(&calls).is_ok(), possible);
    }

    #[test]
    fn maps_as_by_brute_force(calls in calls(map_call())) {
        prop_assert_eq!(check::<Map>(&calls).is_ok(), brute_force::<Map>(&calls));
    }

    #[test]
    fn stacks_as_by_brute_force(calls in calls(sequence_call())) {
        prop_assert_eq!(check::<Stack>(&calls).is_ok(), brute_force::<Stack>(&calls));
    }

    #[test]
    fn queues_as_by_brute_force(calls in calls(sequence_call())) {
        prop_assert_eq!(check::<Queue>(&calls).is_ok(), brute_force::<Queue>(&calls));
    }
}
