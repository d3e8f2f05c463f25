//! An order explains the reads and writes of transactions over MV-RLU and RLU on native threads,
//! more than CPUs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use manycore::clock::{Clock, Counter, Ordo, RelaxedClock};
use manycore::session::{self, Conflict, Ptr, RawSession, Sessions, Transaction};
use manycore::sync::hint;
use manycore::{mvrlu, rlu};
use manycore_history::history;
use manycore_history::run::unless_interpreted;
use manycore_history::snapshot::{self, Isolation};

const OBJECTS: usize = 6;
const ROUNDS: u64 = unless_interpreted(200, 12);
/// The least number of commits. A history with fewer shows little, so the threads continue until
/// then.
const COMMITTED_AT_LEAST: u64 = ROUNDS / 2;

/// Reads all, changes two to a unique version, and reads again.
fn change<'id, S: RawSession>(
    tx: &mut Transaction<'_, 'id, S>,
    objects: &[Ptr<'id, u64>],
    seen: &mut snapshot::Transaction,
    (changed, version): ([usize; 2], u64),
    serializable: bool,
) -> Result<(), Conflict> {
    for (name, object) in (0..).zip(objects) {
        seen.read(name, *tx.deref(*object));
        if serializable {
            tx.try_lock_const(*object)?;
        }
    }
    for name in changed {
        // Others come in between, also where there is one CPU.
        if version.is_multiple_of(3) {
            hint::yield_now();
        }
        let data = tx.try_lock(objects[name])?;
        if *data != version {
            seen.write(name as u64, *data, version);
            *data = version;
        }
    }
    for (name, object) in (0..).zip(objects) {
        seen.read(name, *tx.deref(*object));
    }
    Ok(())
}

fn an_order_explains_it(domain: &impl Sessions, threads: u32, isolation: Isolation) {
    let clock = history::Clock::new();
    let committed = AtomicU64::new(0);
    let logs = session::scope(domain, |all| {
        let mut member = all.register();
        let objects = [(); OBJECTS].map(|()| member.create(0));
        let work = |me: u32| {
            let mut random = fastrand::Rng::with_seed(me.into());
            let (mut member, mut log) = (all.register(), Vec::new());
            let enough = || committed.load(Ordering::Relaxed) >= COMMITTED_AT_LEAST;
            for round in (1..).take_while(|&round| round <= ROUNDS || !enough()) {
                let mut seen = snapshot::Transaction::begin(&clock, me);
                let changes =
                    ([(); 2].map(|()| random.usize(..OBJECTS)), u64::from(me) << 32 | round);
                let ended = member
                    .attempt(|tx| change(tx, &objects, &mut seen, changes, isolation.serializable));
                log.push(match ended {
                    Ok(()) => {
                        committed.fetch_add(1, Ordering::Relaxed);
                        seen.commit(&clock)
                    }
                    Err(_) => {
                        hint::yield_now();
                        seen.abort(&clock)
                    }
                });
            }
            log
        };
        thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> = (0..threads).map(|me| scope.spawn(move || work(me))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
        })
    });
    if let Err(violation) = snapshot::check(&logs, isolation) {
        panic!("no order explains it: {violation}");
    }
}

/// Runs with as many threads as a small machine has CPUs, and with more.
fn all<D: Sessions>(domain: impl Fn() -> D, isolation: Isolation) {
    [2, unless_interpreted(12, 3)]
        .into_iter()
        .for_each(|threads| an_order_explains_it(&domain(), threads, isolation));
}

/// With small logs, so that they go round.
fn mvrlu<C: Clock>(clock: C) -> mvrlu::Domain<C> {
    let config =
        mvrlu::Config::default().with_segment_bytes(1024).with_segments(3).with_segments_max(8);
    mvrlu::Domain::new(clock, config)
}

fn rlu<C: Clock>(clock: C, deferred: usize) -> rlu::Domain<C> {
    rlu::Domain::new(clock, rlu::Config::default().with_deferred(deferred))
}

#[test]
fn of_mvrlu() {
    all(|| mvrlu(Counter::default()), Isolation::STRICT);
    all(|| mvrlu(Ordo::measured()), Isolation::STRICT);
    all(|| mvrlu(RelaxedClock(Ordo::measured())), Isolation::RELAXED);
}

#[test]
fn of_mvrlu_whose_transactions_lock_what_they_read() {
    all(|| mvrlu(Counter::default()), Isolation::STRICT_SERIALIZABLE);
    all(|| mvrlu(Ordo::measured()), Isolation::STRICT_SERIALIZABLE);
}

#[test]
fn of_rlu() {
    all(|| rlu(Counter::default(), 0), Isolation::STRICT);
    all(|| rlu(Counter::default(), 20), Isolation::STRICT);
    all(|| rlu(Ordo::measured(), 3), Isolation::STRICT);
}

#[test]
fn of_rlu_whose_transactions_lock_what_they_read() {
    all(|| rlu(Counter::default(), 0), Isolation::STRICT_SERIALIZABLE);
}
