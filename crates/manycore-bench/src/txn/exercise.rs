//! The checks that every database, of the library or of others, must pass before it is measured.

use std::sync::atomic::{AtomicBool, Ordering};

use super::database::{Contender, Database, Order, Parts, Table};
use super::operations::{Actor, Draws, Tally, verify};
use super::task::{Mix, Size, Task};
use super::{own, peers};
use crate::popularity::Popularity;

const THREADS: u32 = 6;

fn task(contender: &Contender, mix: Mix) -> Task {
    Task {
        sync: contender.name.to_owned(),
        mix,
        threads: THREADS,
        size: Size { records: 200, warehouses: 2, items: 50, customers: 20 },
        update: 50.0,
        popularity: Popularity::Zipf(0.6),
        seed: 3,
    }
}

fn all() -> impl Iterator<Item = &'static Contender> {
    own::native::CONTENDERS.iter().chain(peers::CONTENDERS)
}

/// A database with its first rows.
fn filled(contender: &Contender, task: &Task) -> Box<dyn Database> {
    let database = (contender.make)(task);
    Actor::new(database.session()).fill(task, &mut || ());
    database
}

/// Threads run transactions; returns what they have to tell.
fn together(database: &dyn Database, task: &Task) -> Tally {
    let ranks = task.popularity.ranks(task.size.records);
    let work = |thread| {
        let mut draws = Draws::new(task, thread, &ranks);
        let mut actor = Actor::new(database.session());
        (0..400).for_each(|_| actor.act(&draws.draw()));
        actor.tally
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        Tally::sum(threads.into_iter().map(|thread| thread.join().unwrap()))
    })
}

#[test]
fn what_threads_add_is_there_and_conditions_hold() {
    for contender in all() {
        for mix in [Mix::Ycsb16, Mix::Tpcc] {
            let task = task(contender, mix);
            let database = filled(contender, &task);
            let tally = together(&*database, &task);
            assert!(mix == Mix::Ycsb16 || tally.audits > 0, "{tally:?}");
            let mut session = database.session();
            let found = verify(&mut *session, &task, &tally, tally.added, &mut || ());
            assert_eq!(found, Ok(()), "{task:?}");
        }
    }
}

#[test]
fn what_is_not_there_is_missed() {
    for contender in all() {
        let task = task(contender, Mix::Ycsb16);
        let database = filled(contender, &task);
        let tally = together(&*database, &task);
        let mut session = database.session();
        let found = verify(&mut *session, &task, &tally, tally.added + 1, &mut || ());
        assert!(found.is_err_and(|fault| fault.contains("are there")), "{}", contender.name);
    }
}

#[test]
fn an_audit_sees_what_does_not_agree() {
    for contender in all() {
        let task = task(contender, Mix::Tpcc);
        let database = filled(contender, &task);
        let mut session = database.session();
        session.transact(Parts::ALL, &mut |rows| rows.set(Table::Warehouse, 1, [1, 0, 0, 0]));
        let found = verify(&mut *session, &task, &Tally::default(), 0, &mut || ());
        assert!(found.is_err_and(|fault| fault.contains("warehouse 1")), "{}", contender.name);
        session.transact(Parts::ALL, &mut |rows| rows.set(Table::Warehouse, 1, [0; 4]));
        let mut line = None;
        session.read(Parts::ALL, &mut |rows| {
            rows.scan(Table::Order, (0, 1 << 40), Order::Down, &mut |key, row| {
                line = Some((key, *row));
                false
            });
        });
        let (key, [customer, lines, ..]) = line.unwrap();
        let row = [customer, lines + 1, 0, 0];
        session.transact(Parts::ALL, &mut |rows| rows.set(Table::Order, key, row));
        let found = verify(&mut *session, &task, &Tally::default(), 0, &mut || ());
        assert!(found.is_err_and(|fault| fault.contains("lines")), "{}", contender.name);
    }
}

/// Snapshots beside transfers, which is what audits rely on.
#[test]
fn no_reader_sees_half_of_a_transaction() {
    for contender in all() {
        let task = task(contender, Mix::Tpcc);
        let database = filled(contender, &task);
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (database, has_ended) = (&database, &has_ended);
            scope.spawn(move || {
                let mut session = database.session();
                for count in 1..=2_000 {
                    session.transact(Parts::ALL, &mut |rows| {
                        rows.set(Table::Record, 1, [count; 4])?;
                        rows.set(Table::Record, 2, [count; 4])
                    });
                }
                // Relaxed: a reader that sees it later reads a little longer.
                has_ended.store(true, Ordering::Relaxed);
            });
            scope.spawn(move || {
                let mut session = database.session();
                // Relaxed: says only when to end.
                while !has_ended.load(Ordering::Relaxed) {
                    session.read(Parts::ALL, &mut |rows| {
                        let [one, other] = [1, 2].map(|key| rows.get(Table::Record, key));
                        assert_eq!(one, other, "{}", contender.name);
                    });
                }
            });
        });
    }
}
