//! Histories of transactions that snapshot isolation allows, and histories that it does not.

use manycore_history::history::Clock;
use manycore_history::snapshot::{Anomaly, Isolation, Transaction, Write, check};
use proptest::prelude::*;

/// A transaction that commits: begin, end, its reads, and its writes (object, before, after).
pub fn committed(
    began: u64,
    ended: u64,
    reads: &[(u64, u64)],
    writes: &[(u64, u64, u64)],
) -> Transaction {
    let write = |&(object, before, after): &(u64, u64, u64)| Write { object, before, after };
    Transaction {
        thread: 0,
        began,
        ended,
        committed: true,
        reads: reads.to_vec(),
        writes: writes.iter().map(write).collect(),
        lost: Vec::new(),
    }
}

fn anomaly(history: &[Transaction], isolation: Isolation) -> Option<Anomaly> {
    check(history, isolation).err().map(|violation| violation.anomaly)
}

#[test]
fn a_snapshot_is_all_or_nothing() {
    let transfer = committed(0, 10, &[], &[(1, 0, 1), (2, 0, 1)]);
    for (one, other, allowed) in [(0, 0, true), (1, 1, true), (0, 1, false), (1, 0, false)] {
        for commits in [true, false] {
            let mut reader = committed(1, 9, &[(1, one), (2, other)], &[]);
            reader.committed = commits;
            let found = anomaly(&[transfer.clone(), reader], Isolation::RELAXED);
            assert_eq!(found, (!allowed).then_some(Anomaly::TornRead), "sees {one} and {other}");
        }
    }
}

#[test]
fn torn_over_several_transactions() {
    // The reader sees the second of two updates in a row, of different objects, but not the first.
    let history = [
        committed(0, 20, &[], &[(1, 0, 1)]),
        committed(0, 20, &[(1, 1)], &[(2, 0, 1)]),
        committed(0, 20, &[(1, 0), (2, 1)], &[]),
    ];
    let violation = check(&history, Isolation::RELAXED).unwrap_err();
    assert_eq!(violation.anomaly, Anomaly::TornRead);
    assert_eq!(violation.steps.len(), 3, "{violation}");
}

#[test]
fn updates_are_not_lost() {
    let history = [committed(0, 10, &[], &[(1, 0, 1)]), committed(1, 9, &[], &[(1, 0, 2)])];
    assert_eq!(anomaly(&history, Isolation::RELAXED), Some(Anomaly::LostUpdate));
    let mut aborted = history.clone();
    aborted[1].committed = false;
    assert_eq!(anomaly(&aborted, Isolation::STRICT), None);
}

#[test]
fn what_is_aborted_is_not_seen() {
    let mut history = [committed(0, 10, &[], &[(1, 0, 1)]), committed(1, 20, &[(1, 1)], &[])];
    history[0].committed = false;
    assert_eq!(anomaly(&history, Isolation::RELAXED), Some(Anomaly::ReadFromNowhere));
}

#[test]
fn a_transaction_sees_what_it_has_written() {
    for (seen, anomaly) in [(5, None), (0, Some(Anomaly::LostWrite))] {
        for commits in [true, false] {
            let clock = Clock::new();
            let mut writer = Transaction::begin(&clock, 0);
            writer.read(1, 0);
            writer.write(1, 0, 5);
            writer.read(1, seen);
            let writer = if commits { writer.commit(&clock) } else { writer.abort(&clock) };
            let found = check(&[writer], Isolation::RELAXED).err().map(|found| found.anomaly);
            assert_eq!(found, anomaly, "sees {seen}");
        }
    }
}

#[test]
fn a_finished_commit_may_be_missed_if_relaxed() {
    let history = [committed(0, 10, &[], &[(1, 0, 1)]), committed(11, 20, &[(1, 0)], &[])];
    assert_eq!(anomaly(&history, Isolation::RELAXED), None);
    assert_eq!(anomaly(&history, Isolation::STRICT), Some(Anomaly::MissedCommit));
}

#[test]
fn the_future_is_not_seen() {
    let history = [committed(0, 10, &[(1, 1)], &[]), committed(11, 20, &[], &[(1, 0, 1)])];
    let violation = check(&history, Isolation::RELAXED).unwrap_err();
    assert_eq!(violation.anomaly, Anomaly::FutureRead);
    assert!(violation.to_string().contains("ends before"), "{violation}");
}

#[test]
fn write_skew_is_permitted_or_not() {
    let history = [
        committed(0, 10, &[(1, 0), (2, 0)], &[(1, 0, 1)]),
        committed(1, 9, &[(1, 0), (2, 0)], &[(2, 0, 1)]),
    ];
    assert!(!check(&history, Isolation::STRICT).unwrap().serializable);
    let found = anomaly(&history, Isolation::STRICT_SERIALIZABLE);
    assert_eq!(found, Some(Anomaly::WriteSkew));
}

#[test]
fn long_histories_are_judged_quickly() {
    let each = |i| committed(2 * i, 2 * i + 9, &[(2, 0)], &[(1, i, i + 1)]);
    // They overlap, and still are one after the other.
    let mut history: Vec<_> = (0..20_000).map(each).collect();
    assert!(check(&history, Isolation::STRICT).unwrap().serializable);
    history.push(committed(30_000, 30_001, &[(1, 1)], &[]));
    assert_eq!(anomaly(&history, Isolation::STRICT), Some(Anomaly::MissedCommit));
    assert_eq!(anomaly(&history, Isolation::RELAXED), None);
}

/// Tries all orders of snapshots and commits.
fn brute_force(history: &[Transaction], strict: bool) -> bool {
    /// Objects' versions, and the phase of each transaction: before its snapshot, before its
    /// commit, done.
    #[derive(Clone)]
    struct State {
        now: [u64; 2],
        snapshots: Vec<Option<[u64; 2]>>,
        done: Vec<bool>,
    }
    fn goes_on(history: &[Transaction], state: &State, strict: bool) -> bool {
        let all = || 0..history.len();
        // Whether this instant of `i` is too late, or should come after another that is still to
        // come.
        let in_time = |i: usize, commit: bool| {
            all().filter(|other| *other != i && history[*other].ended < history[i].began).all(
                |other| {
                    if strict {
                        state.done[other]
                    } else {
                        !commit || state.snapshots[other].is_some()
                    }
                },
            )
        };
        let snapshot = |i: usize| {
            let seen = history[i].writes.iter().map(|w| (w.object, w.before));
            let mut seen = history[i].reads.iter().copied().chain(seen);
            let mut next = state.clone();
            next.snapshots[i] = Some(state.now);
            seen.all(|(object, version)| state.now[object as usize] == version)
                && in_time(i, false)
                && goes_on(history, &next, strict)
        };
        let commit = |i: usize| {
            let mut next = state.clone();
            next.done[i] = true;
            let fresh = history[i].writes.iter().all(|write| {
                next.now[write.object as usize] = write.after;
                state.now[write.object as usize] == write.before
            });
            fresh && in_time(i, true) && goes_on(history, &next, strict)
        };
        if state.done.iter().all(|done| *done) {
            return true;
        }
        let mut open = all().filter(|i| !state.done[*i]);
        open.any(|i| if state.snapshots[i].is_none() { snapshot(i) } else { commit(i) })
    }
    let n = history.len();
    let start = State { now: [0; 2], snapshots: vec![None; n], done: vec![false; n] };
    goes_on(history, &start, strict)
}

/// The actions of one transaction of a random history on each of two objects: whether it writes the
/// object, and which version it sees.
type Touches = [(bool, u64); 2];

/// Up to four transactions on two objects. A version's number is one more than that of the
/// transaction that made it.
fn transactions() -> impl Strategy<Value = Vec<Transaction>> {
    let touch = || (any::<bool>(), 0..5_u64);
    let one = (0..8_u64, 1..6_u64, [touch(), touch()]);
    prop::collection::vec(one, 1..5).prop_map(|all| {
        let count = all.len() as u64;
        let transaction = |((began, length, touches), own): ((u64, u64, Touches), u64)| {
            let mut transaction = committed(began, began + length, &[], &[]);
            for ((writes, seen), object) in touches.into_iter().zip(0..) {
                let seen = if seen > count { 0 } else { seen };
                match writes {
                    _ if seen == own => {}
                    true => transaction.writes.push(Write { object, before: seen, after: own }),
                    false => transaction.reads.push((object, seen)),
                }
            }
            transaction
        };
        all.into_iter().zip(1..).map(transaction).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn as_by_brute_force(history in transactions()) {
        for isolation in [Isolation::RELAXED, Isolation::STRICT] {
            let possible = brute_force(&history, isolation.strict);
            prop_assert_eq!(check(&history, isolation).is_ok(), possible);
        }
    }
}
