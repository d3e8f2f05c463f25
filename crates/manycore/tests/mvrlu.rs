//! MV-RLU by many native threads, more than CPUs: snapshots are consistent, nothing is lost, and what stalls is reported.
#![cfg(not(any(loom, manycore_bare)))]

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use manycore::clock::{Clock, Counter, Ordo, RelaxedClock};
use manycore::mvrlu::{Config, Domain};
use manycore::session::{self, Conflict, Ptr, RawSession, Transaction};

/// Small logs, so that they go round.
fn small() -> Config {
    Config { segment_bytes: 1024, segments: 3, segments_max: 8, ..Config::default() }
}

/// A little random number.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 40) as usize
}

const ACCOUNTS: usize = 50;
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

/// Threads transfer between accounts, some of them in vain, some die on the way; every snapshot has the same sum.
fn bank<C: Clock>(clock: C, threads: u64, rounds: u32) {
    let domain = Domain::new(clock, small());
    let torn = AtomicU32::new(0);
    session::scope(&domain, |bank| {
        let mut member = bank.register();
        let accounts: Vec<_> = (0..ACCOUNTS).map(|_| member.create(EACH)).collect();
        let accounts = &accounts;
        thread::scope(|s| {
            for me in 0..threads {
                let torn = &torn;
                s.spawn(move || {
                    let mut random = me;
                    let mut member = bank.register();
                    for round in 0..rounds {
                        let (from, to) =
                            (next(&mut random) % ACCOUNTS, next(&mut random) % ACCOUNTS);
                        let gives_up = next(&mut random).is_multiple_of(8);
                        if gives_up {
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
    println!("{:?}", domain.stats());
}

#[test]
fn a_bank_with_the_counter() {
    bank(Counter::default(), 64, 300);
}

#[test]
fn a_bank_with_the_cpus_clocks() {
    bank(Ordo::measured(), 64, 300);
}

#[test]
fn a_bank_with_the_cpus_clocks_relaxed() {
    bank(RelaxedClock(Ordo::measured()), 64, 300);
}
