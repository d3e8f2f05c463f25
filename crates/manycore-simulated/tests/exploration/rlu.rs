//! RLU: snapshots are of one moment, and no thread finds freed objects.

use manycore_history::snapshot::Isolation;
use manycore_simulated::clock::{Clock, Counter, Ordo};
use manycore_simulated::rlu::{Config, Domain};
use manycore_simulated::session::View;

use crate::explore;
use crate::sessions::{bank, freed, history, leaves};
use manycore_simulated::clock::Skewed;

fn domain<C: Clock>(clock: C, deferred: usize) -> Domain<C> {
    Domain::new(clock, Config::default().with_deferred(deferred))
}

fn counter() -> Domain<Counter> {
    domain(Counter::default(), 0)
}

fn ordo() -> Domain<Ordo> {
    // Simulated counters do not differ here, so that any boundary is large enough.
    domain(Ordo::with_boundary(10), 0)
}

fn wrong(deferred: usize) -> impl Fn() -> Domain<Skewed> {
    move || domain(Skewed::wrong(), deferred)
}

/// A domain whose commits are written back by the thread that needs it.
fn deferred() -> Domain<Counter> {
    domain(Counter::default(), 2)
}

#[test]
fn an_order_explains_what_transactions_saw() {
    explore().schedules(1500).check(history(counter, 3, Isolation::STRICT));
    explore().schedules(1500).check(history(ordo, 2, Isolation::STRICT));
    explore().schedules(1500).check(history(deferred, 3, Isolation::STRICT));
    explore().schedules(1500).check(history(counter, 2, Isolation::STRICT_SERIALIZABLE));
}

#[test]
fn a_snapshot_is_of_one_moment() {
    explore().schedules(1500).check(bank(counter, 3, 2));
    explore().schedules(1500).check(bank(ordo, 2, 2));
    explore().schedules(1500).check(bank(deferred, 3, 2));
}

#[test]
fn nobody_finds_what_was_freed() {
    explore().check(leaves(counter, View::Latest, 4));
    explore().check(leaves(ordo, View::Snapshot, 3));
    explore().check(leaves(deferred, View::Latest, 4));
}

/// Snapshots are not consistent then, but they read only memory that is valid.
#[test]
fn nobody_finds_what_was_freed_under_a_wrong_clock() {
    for deferred in [0, 2] {
        explore().check(leaves(wrong(deferred), View::Snapshot, 4));
        explore().check(leaves(wrong(deferred), View::Latest, 4));
    }
}

#[test]
fn what_is_freed_shows_what_it_was() {
    explore().check(freed(counter));
    explore().check(freed(deferred));
}
