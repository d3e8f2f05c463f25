//! Trees of intervals: a search finds earlier insertions, and nothing that was removed.

use std::sync::Arc;

use manycore_history::run::{self, Explored, Mix};
use manycore_simulated::ReverseMap;
use manycore_simulated::collections::interval::{
    CombinedTrees, DeferredForest, DeferredTrees, HarrisLists, LockedTrees, LoggedTrees,
    SettledTrees,
};
use manycore_simulated::ldu::{Global, Rooted, Table};
use manycore_simulated::lock::Adaptive;

use crate::explore;

fn reads_see_what_was_done<M: ReverseMap>(make: impl Fn() -> M) {
    for seed in 0..2 {
        let mix = Mix { operations: 5, ..Mix::explored(3, seed) };
        explore().schedules(500).check(|| run::check_reverse_map(Explored, &mix, &make()));
    }
}

#[test]
fn under_a_lock() {
    reads_see_what_was_done(|| LockedTrees::<Adaptive>::new(2));
}

#[test]
fn by_flat_combining() {
    reads_see_what_was_done(|| CombinedTrees::new(2));
}

#[test]
fn deferred() {
    let trees = || DeferredTrees::<Global, Adaptive>::new(2, Global::new);
    reads_see_what_was_done(trees);
    reads_see_what_was_done(|| trees().eager_below(u64::MAX));
}

#[test]
fn deferred_by_core() {
    reads_see_what_was_done(|| {
        let table = Arc::new(Table::new(1));
        DeferredTrees::<_, Adaptive>::new(2, || Rooted::new(table.clone()))
    });
    reads_see_what_was_done(|| DeferredForest::<Adaptive>::new(2));
}

#[test]
fn logged_with_the_time() {
    reads_see_what_was_done(|| LoggedTrees::<Adaptive>::new(2));
}

#[test]
fn settled() {
    reads_see_what_was_done(|| SettledTrees::<Adaptive>::new(2));
    reads_see_what_was_done(|| SettledTrees::<Adaptive>::per_cpu(2));
    reads_see_what_was_done(|| SettledTrees::<Adaptive>::combined(2));
}

#[test]
fn in_lists_without_locks() {
    reads_see_what_was_done(|| HarrisLists::new(2));
}
