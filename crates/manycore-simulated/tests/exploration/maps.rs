//! Maps whose values are replaced. Versions are written back and discarded, and nodes freed, as
//! early as possible.

use manycore_history::run::{self, Explored, Mix};
use manycore_sim::thread;
use manycore_simulated::collections::hash::{
    ChainedTable, CombinedTable, GrowingTable, MvrluTable, RcuTable,
};
use manycore_simulated::collections::list::{CombinedList, MvrluList, RcuList};
use manycore_simulated::collections::tree::{CombinedTree, MvrluTree};
use manycore_simulated::collections::versioned::{Placement, Versioned};
use manycore_simulated::lock::Adaptive;
use manycore_simulated::reclaim::{Config, Qsbr};
use manycore_simulated::session::Sessions;
use manycore_simulated::{ConcurrentMap, MapHandle, mvrlu, rlu};

use crate::explore;

fn is_linearizable<M: ConcurrentMap<u64, u64>>(make: impl Fn() -> M) {
    for seed in 0..2 {
        let mix =
            Mix { operations: 6, inserts: 50, removes: 25, ..Mix::explored(2 + seed as u32, seed) };
        explore().schedules(700).check(|| run::check_map(Explored, &mix, &make()));
    }
}

/// A domain that searches for a grace period after each session, and is full after few of them.
fn eager() -> mvrlu::Domain {
    let config = mvrlu::Config::default()
        .with_segment_bytes(512)
        .with_segments(2)
        .with_segments_max(4)
        .with_hops_max(0);
    mvrlu::Domain::new(Default::default(), config)
}

#[test]
fn of_mvrlu() {
    is_linearizable(|| MvrluList::<u64, u64>::new(eager()));
    is_linearizable(|| MvrluTable::<u64, u64>::with_buckets(eager(), 2));
    is_linearizable(|| MvrluTree::<u64, u64>::new(eager()));
    is_linearizable(|| GrowingTable::<u64, u64, _>::with_keys_per_bucket(eager(), 0, 1));
}

#[test]
fn of_rlu() {
    is_linearizable(|| MvrluList::<u64, u64, rlu::Domain>::new(rlu::Domain::default()));
    is_linearizable(|| {
        MvrluTable::<u64, u64, rlu::Domain>::with_buckets(rlu::Domain::deferring(), 2)
    });
    is_linearizable(|| MvrluTree::<u64, u64, rlu::Domain>::new(rlu::Domain::deferring()));
}

#[test]
fn of_quiescent_rcu() {
    let config = || Config::default().with_batch(1);
    is_linearizable(|| RcuList::<u64, u64, Adaptive, Qsbr>::new(config()));
    is_linearizable(|| RcuTable::<u64, u64, Adaptive, Qsbr>::new(2, config()));
}

#[test]
fn of_flat_combining() {
    is_linearizable(CombinedList::<u64, u64>::default);
    is_linearizable(|| CombinedTable::<u64, u64>::new(ChainedTable::new(2)));
    is_linearizable(CombinedTree::<u64, u64>::default);
}

const PAIRS: u64 = 2;

/// For each pair of keys there is one entry, which threads move between the two. A reader finds one
/// of each pair, with its value.
fn scans_see_one_moment<M: Sessions, P: Placement<u64>>(
    make: impl Fn() -> Versioned<u64, u64, M, P>,
) where
    Versioned<u64, u64, M, P>: Sync,
{
    explore().schedules(700).check(|| {
        let map = make();
        let mut handle = ConcurrentMap::handle(&map);
        (0..PAIRS).for_each(|pair| _ = handle.insert(2 * pair, pair));
        drop(handle);
        thread::parallel(3, |me| {
            let mut handle = ConcurrentMap::handle(&map);
            for round in 0..2 {
                let pair = (u64::from(me) + round) % PAIRS;
                handle.transact(|tx| {
                    let is_there = tx.get(&(2 * pair)).is_some();
                    let (from, to) =
                        (2 * pair + u64::from(!is_there), 2 * pair + u64::from(is_there));
                    let value = tx.remove(&from)?.expect("one of the pair is there");
                    assert_eq!(tx.insert(to, value)?, None, "both of the pair are there");
                    Ok(())
                });
                let mut found = Vec::new();
                handle.snapshot(|now| now.for_each(|key, value| found.push((key / 2, *value))));
                found.sort_unstable();
                assert!(
                    found.iter().copied().eq((0..PAIRS).map(|pair| (pair, pair))),
                    "a scan of two moments: {found:?}"
                );
            }
        });
    });
}

#[test]
fn scans_of_mvrlu() {
    scans_see_one_moment(|| MvrluList::new(eager()));
    scans_see_one_moment(|| MvrluTable::with_buckets(eager(), 2));
    scans_see_one_moment(|| MvrluTree::new(eager()));
    scans_see_one_moment(|| GrowingTable::with_keys_per_bucket(eager(), 0, 1));
}

#[test]
fn scans_of_rlu() {
    scans_see_one_moment(|| MvrluList::<u64, u64, rlu::Domain>::new(rlu::Domain::default()));
    scans_see_one_moment(|| MvrluTree::<u64, u64, rlu::Domain>::new(rlu::Domain::default()));
}
