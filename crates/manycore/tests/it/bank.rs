//! A bank over MV-RLU and RLU, by many native threads, more than CPUs: snapshots are consistent,
//! and nothing is lost.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use manycore::clock::{Clock, Counter, Ordo, RelaxedClock};
use manycore::session::{self, Conflict, Ptr, RawSession, Sessions, Transaction};
use manycore::{mvrlu, rlu};
use manycore_history::run::unless_interpreted;

const ACCOUNTS: usize = unless_interpreted(50, 5);
const EACH: u64 = 100;

fn transfer<'id, S: RawSession>(
    tx: &mut Transaction<'_, 'id, S>,
    accounts: &[Ptr<'id, u64>],
    from: usize,
    to: usize,
    gives_up: bool,
) -> Result<(), Conflict> {
    let left = tx.try_lock(accounts[from])?;
    let amount = (*left).min(3);
    *left -= amount;
    if gives_up {
        return Err(Conflict::Retry);
    }
    *tx.try_lock(accounts[to])? += amount;
    Ok(())
}

/// Threads transfer between accounts; some transfers fail, and some threads die on the way; every
/// snapshot has the same sum.
fn bank(domain: &impl Sessions, threads: u64, rounds: u32) {
    let (threads, rounds) = unless_interpreted((threads, rounds), (3, 12));
    let torn = AtomicU32::new(0);
    session::scope(domain, |bank| {
        let mut member = bank.register();
        let accounts: Vec<_> = (0..ACCOUNTS).map(|_| member.create(EACH)).collect();
        let accounts = &accounts;
        thread::scope(|s| {
            for me in 0..threads {
                let torn = &torn;
                s.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(me);
                    let mut member = bank.register();
                    for round in 0..rounds {
                        let (from, to) = (random.usize(..ACCOUNTS), random.usize(..ACCOUNTS));
                        if random.u8(..8) == 0 {
                            let attempt =
                                member.attempt(|tx| transfer(tx, accounts, from, to, true));
                            assert!(attempt.is_err());
                        } else {
                            member.run(|tx| transfer(tx, accounts, from, to, false));
                        }
                        if round.is_multiple_of(4) {
                            let sum: u64 = member.read(|snapshot| {
                                accounts.iter().map(|a| *snapshot.deref(*a)).sum()
                            });
                            // Relaxed: read when the threads have ended.
                            torn.fetch_add(
                                u32::from(sum != ACCOUNTS as u64 * EACH),
                                Ordering::Relaxed,
                            );
                        }
                    }
                    if me.is_multiple_of(4) {
                        // Dies with a session open, and an object locked.
                        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                            member.run(|tx| -> Result<(), Conflict> {
                                *tx.try_lock(accounts[me as usize % ACCOUNTS])? += 1;
                                std::panic::resume_unwind(Box::new(()));
                            });
                        }));
                    }
                });
            }
        });
        assert_eq!(torn.into_inner(), 0, "snapshots with another sum");
        let sum: u64 = member.read(|snapshot| accounts.iter().map(|a| *snapshot.deref(*a)).sum());
        assert_eq!(sum, ACCOUNTS as u64 * EACH);
    });
    domain.statistics(&mut |name, count| print!("{name} {count} "));
}

/// With small logs, so that they go round.
fn mvrlu<C: Clock>(clock: C) -> mvrlu::Domain<C> {
    let config =
        mvrlu::Config::default().with_segment_bytes(1024).with_segments(3).with_segments_max(8);
    mvrlu::Domain::new(clock, config)
}

#[test]
fn mvrlu_with_the_counter() {
    bank(&mvrlu(Counter::default()), 64, 300);
}

#[test]
fn mvrlu_with_the_cpus_clocks() {
    bank(&mvrlu(Ordo::measured()), 64, 300);
}

#[test]
fn mvrlu_with_the_cpus_clocks_relaxed() {
    bank(&mvrlu(RelaxedClock(Ordo::measured())), 64, 300);
}

fn rlu<C: Clock>(clock: C, deferred: usize) -> rlu::Domain<C> {
    rlu::Domain::new(clock, rlu::Config::default().with_deferred(deferred))
}

#[test]
fn rlu_with_the_counter() {
    bank(&rlu(Counter::default(), 0), 64, 300);
}

#[test]
fn rlu_with_the_cpus_clocks() {
    bank(&rlu(Ordo::measured(), 0), 64, 300);
    bank(&rlu(RelaxedClock(Ordo::measured()), 0), 64, 100);
}

#[test]
fn rlu_that_puts_off_writing_back() {
    bank(&rlu(Counter::default(), 20), 64, 300);
    bank(&rlu(Ordo::measured(), 3), 64, 100);
}
