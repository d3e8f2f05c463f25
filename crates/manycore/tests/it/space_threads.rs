//! Maps in a space, used by more threads than CPUs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use manycore::collections::hash::FixedState;
use manycore::collections::space::{ArtMap, BTreeMap, Handle, HashMap, Limit, Map, Space};
use manycore::collections::versioned::art::Art;
use manycore::collections::versioned::btree::BPlus;
use manycore::collections::versioned::{Growing, Seek, Structure};
use manycore::session::Sessions;
use manycore::{mvrlu, rlu};
use manycore_history::run::{self, Mix, Native, unless_interpreted};

/// With nodes of three keys, so that few keys make many levels.
type Small<K, V, M = mvrlu::Domain> = Map<K, V, BPlus<3, 3>, M>;

/// Two accounts in two maps, at least one of which has to be positive: with snapshots alone both
/// could be emptied at the same time.
#[test]
fn serializable_transactions_have_no_write_skew() {
    let space = <Space>::default();
    let (ours, theirs) = (BTreeMap::<u64, i64>::new_in(&space), BTreeMap::new_in(&space));
    for round in 0..unless_interpreted(2_000, 20) {
        ours.set(round, 1);
        theirs.set(round, 1);
        thread::scope(|s| {
            for (mine, other) in [(&ours, &theirs), (&theirs, &ours)] {
                let space = &space;
                s.spawn(move || {
                    let take = space.transact_with(Limit::NONE.serializable(), |tx| {
                        let both = tx.get(mine, &round).unwrap() + tx.get(other, &round).unwrap();
                        if both > 1 {
                            tx.set(mine, round, 0)?;
                        }
                        Ok(())
                    });
                    take.unwrap();
                });
            }
        });
        assert_eq!(ours.get(&round).unwrap() + theirs.get(&round).unwrap(), 1);
    }
}

/// Threads move money between accounts of two maps, and open and close some; an auditor finds the
/// same sum at each moment.
fn bank<P, M: Sessions + Default + 'static>(threads: u64)
where
    P: Seek<String, String> + Seek<String, str> + Structure<Settings: Default>,
{
    const ACCOUNTS: u64 = unless_interpreted(64, 8);
    let space = Space::<M>::default();
    let checking = Small::<u64, i64, M>::new_in(&space);
    let savings = Map::<String, i64, P, M>::new_in(&space);
    (0..ACCOUNTS).for_each(|n| _ = checking.set(n, 100));
    let sum = |of: &mut Handle<'_, M>| {
        of.snapshot(|now| {
            let mut sum = now.iter(&checking).rev().map(|(_, value)| value).sum::<i64>();
            now.for_each(&savings, |_, value| {
                sum += value;
                true
            });
            sum
        })
    };
    let audits = AtomicU64::new(0);
    thread::scope(|s| {
        for seed in 0..threads {
            let (space, checking, savings) = (&space, &checking, &savings);
            let (sum, audits) = (&sum, &audits);
            s.spawn(move || {
                let (mut me, mut random) = (space.handle(), fastrand::Rng::with_seed(seed));
                for round in 0..unless_interpreted(3_000, 10) {
                    let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS).to_string());
                    let amount = random.i64(1..50);
                    me.transact(|tx| {
                        let (has, other) = (
                            tx.get(checking, &from).copied().unwrap_or(0),
                            tx.get(savings, to.as_str()).copied().unwrap_or(0),
                        );
                        if has >= amount {
                            tx.set(checking, from, has - amount)?;
                            tx.set(savings, to.clone(), other + amount)?;
                        } else {
                            tx.delete(savings, to.as_str())?;
                            tx.set(checking, from, has + other)?;
                        }
                        Ok(())
                    });
                    if round % 16 == 0 {
                        assert_eq!(sum(&mut me), 100 * ACCOUNTS as i64);
                        audits.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(sum(&mut space.handle()), 100 * ACCOUNTS as i64);
    assert!(audits.into_inner() > 0);
    checking.check();
}

#[test]
fn a_bank_over_two_maps() {
    bank::<BPlus<3, 3>, mvrlu::Domain>(unless_interpreted(8, 3));
    bank::<BPlus<3, 3>, rlu::Domain>(unless_interpreted(4, 3));
    bank::<Art, mvrlu::Domain>(unless_interpreted(8, 3));
    bank::<Art, rlu::Domain>(unless_interpreted(4, 3));
    bank::<Growing, mvrlu::Domain>(unless_interpreted(8, 3));
    bank::<Growing, rlu::Domain>(unless_interpreted(4, 3));
}

#[test]
fn linearizable() {
    for threads in [2, unless_interpreted(8, 3)] {
        let mix = Mix::native(threads);
        run::check_map(Native, &mix, &Small::<u64, u64>::new());
        run::check_map(Native, &mix, &BTreeMap::<u64, u64>::new());
        run::check_map(Native, &mix, &Small::<u64, u64, rlu::Domain>::new());
        run::check_set(Native, &mix, &Small::<u64, ()>::new());
        run::check_map(Native, &mix, &ArtMap::<u64, u64>::new());
        run::check_map(Native, &mix, &ArtMap::<u64, u64, rlu::Domain>::new());
        run::check_map(Native, &mix, &HashMap::<u64, u64>::new());
        run::check_map(Native, &mix, &HashMap::<u64, u64, FixedState, rlu::Domain>::new());
    }
}

/// Each thread inserts its own keys and removes them again; the others' keys are unchanged.
fn grows_and_shrinks<M: Sessions + Default + 'static>() {
    const THREADS: u64 = 4;
    const EACH: u64 = unless_interpreted(2_000, 12);
    let map = Small::<u64, u64, M>::new();
    thread::scope(|s| {
        for me in 0..THREADS {
            let map = &map;
            s.spawn(move || {
                let mut handle = map.space().handle();
                let mut map = map.by(&mut handle);
                for _ in 0..3 {
                    for n in 0..EACH {
                        assert!(map.insert_new(n * THREADS + me, n));
                        assert_eq!(map.get(&(n / 2 * THREADS + me)), Some(n / 2));
                    }
                    for n in (0..EACH).rev() {
                        assert_eq!(map.remove(&(n * THREADS + me)), Some(n));
                        assert_eq!(map.get(&(n / 2 * THREADS + me)), (n / 2 < n).then_some(n / 2));
                    }
                }
            });
        }
    });
    assert!(map.is_empty());
    // A leaf whose neighbour another thread has locked stays until a later operation reaches it: of
    // some 2,700 leaves, more or fewer as threads are preempted.
    let most = (THREADS * EACH / 60).max(50) as usize;
    assert!(map.check() < most, "{} empty leaves", map.check());
}

#[test]
fn nothing_is_lost_while_it_grows_and_shrinks() {
    grows_and_shrinks::<mvrlu::Domain>();
    grows_and_shrinks::<rlu::Domain>();
}
