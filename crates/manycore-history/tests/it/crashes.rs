//! What crashes may leave of transactions, and what not.

use manycore_history::snapshot::{Anomaly, Isolation, Transaction, check_crash};

use crate::snapshot::committed;

/// Judges a crash after which objects 1 and 2 have these versions. Transactions that had ended by
/// the given moment were acknowledged.
fn found(history: &[Transaction], left: [u64; 2], acknowledged: u64) -> Option<Anomaly> {
    let left = [(1, left[0]), (2, left[1])];
    let by_then = |transaction: &Transaction| transaction.ended <= acknowledged;
    let found = check_crash(history, &left, by_then, Isolation::STRICT_SERIALIZABLE);
    found.err().map(|violation| violation.anomaly)
}

#[test]
fn the_last_may_be_taken_back_if_nobody_was_told_of_them() {
    let history = [
        committed(0, 2, &[], &[(1, 0, 1)]),
        committed(3, 5, &[(1, 1)], &[(2, 0, 1)]),
        committed(6, 8, &[], &[(1, 1, 2)]),
    ];
    for (left, acknowledged, anomaly) in [
        ([2, 1], 8, None),
        ([1, 1], 5, None),
        ([1, 0], 2, None),
        ([0, 0], 0, None),
        ([1, 1], 8, Some(Anomaly::LostCommit)),
        ([0, 0], 2, Some(Anomaly::LostCommit)),
        ([0, 1], 0, Some(Anomaly::LostBeforeLeft)),
        ([2, 0], 2, Some(Anomaly::LostBeforeLeft)),
        ([7, 0], 0, Some(Anomaly::ReadFromNowhere)),
    ] {
        assert_eq!(found(&history, left, acknowledged), anomaly, "{left:?} {acknowledged}");
    }
}

#[test]
fn a_transaction_is_taken_back_whole() {
    let history = [committed(0, 9, &[], &[(1, 0, 1), (2, 0, 1)])];
    for (left, anomaly) in [
        ([0, 0], None),
        ([1, 1], None),
        ([1, 0], Some(Anomaly::TornRead)),
        ([0, 1], Some(Anomaly::TornRead)),
    ] {
        assert_eq!(found(&history, left, 0), anomaly, "{left:?}");
    }
}

#[test]
fn nothing_stays_that_was_made_from_what_is_lost() {
    // They overlap, so that time says nothing.
    let history = [committed(0, 9, &[], &[(1, 0, 1)]), committed(1, 8, &[(1, 1)], &[(2, 0, 1)])];
    assert_eq!(found(&history, [1, 0], 0), None);
    assert_eq!(found(&history, [0, 1], 0), Some(Anomaly::ReadFromNowhere));
}

#[test]
fn what_a_reader_was_told_is_not_lost() {
    let history = [committed(0, 9, &[], &[(1, 0, 1)]), committed(1, 8, &[(1, 1)], &[])];
    assert_eq!(found(&history, [0, 0], 7), None);
    assert_eq!(found(&history, [0, 0], 8), Some(Anomaly::ReadFromNowhere));
    assert_eq!(found(&history, [1, 0], 8), None);
}
