//! MV-RLU: snapshots are of one moment, and nobody finds what was discarded.

use manycore_sim::thread;
use manycore_simulated::clock::{Clock, Counter, Ordo};
use manycore_simulated::mvrlu::{Config, Domain};
use manycore_simulated::session::{self, Conflict, Link, RawSession, View};

use crate::explore;

/// With a look for a grace period after each session, and logs that go round soon.
fn domain<C: Clock>(clock: C) -> Domain<C> {
    let config = Config {
        segment_bytes: 256,
        segments: 2,
        segments_max: 4,
        hops_max: 0,
        ..Config::default()
    };
    Domain::new(clock, config)
}

/// Simulated counters do not differ here, so that any boundary will do.
fn ordo() -> Ordo {
    Ordo::with_boundary(10)
}

const ACCOUNTS: u32 = 3;

/// Threads transfer between accounts and look at the sum.
fn bank<C: Clock>(clock: impl Fn() -> C, threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let domain = domain(clock());
        session::scope(&domain, |bank| {
            let accounts = {
                let mut member = bank.register();
                [(); ACCOUNTS as usize].map(|()| member.create(10_u32))
            };
            thread::parallel(threads, |me| {
                let mut member = bank.register();
                for round in 0..rounds {
                    let from = accounts[((me + round) % ACCOUNTS) as usize];
                    let to = accounts[((me + round + 1) % ACCOUNTS) as usize];
                    let mut attempts = 0;
                    member.run(|tx| -> Result<(), Conflict> {
                        *tx.try_lock(from)? -= 1;
                        attempts += 1;
                        if (me + round).is_multiple_of(3) && attempts == 1 {
                            return Err(Conflict::Retry);
                        }
                        *tx.try_lock(to)? += 1;
                        Ok(())
                    });
                    let sum: u32 =
                        member.read(|now| accounts.iter().map(|account| now.deref(*account)).sum());
                    assert_eq!(sum, ACCOUNTS * 10, "a snapshot of two moments");
                }
            });
        });
    }
}

/// A number that is also in a leaf, which is made anew for each change.
#[derive(Clone, Copy)]
struct Root {
    number: u32,
    leaf: Link<u32>,
}

/// A thread changes the number, others read it.
fn leaves<C: Clock>(clock: impl Fn() -> C, view: View, changes: u32) -> impl Fn() {
    move || {
        let domain = domain(clock());
        let mut handle = domain.register();
        // SAFETY: a session, from begin to end.
        let root = unsafe {
            handle.begin(View::Latest);
            let leaf = handle.alloc(0);
            let root = handle.alloc(Root { number: 0, leaf });
            handle.commit();
            root
        };
        drop(handle);
        thread::parallel(3, |me| {
            let mut handle = domain.register();
            for number in 1..=changes {
                // SAFETY: a session, from begin to end; a leaf is freed when the root does not lead to it any more.
                unsafe {
                    handle.begin(view);
                    if me == 0 {
                        let place = handle.try_lock(root).expect("nobody else changes it");
                        let before = (*place).leaf;
                        *place = Root { number, leaf: handle.alloc(number) };
                        handle.free(before).expect("nobody else frees it");
                    } else {
                        let root = *handle.deref(root);
                        let number = *handle.deref(root.leaf);
                        assert_eq!(root.number, number, "a leaf that was freed");
                    }
                    handle.commit();
                }
            }
        });
    }
}

#[test]
fn a_snapshot_is_of_one_moment() {
    explore().check(bank(Counter::default, 2, 2));
    explore().check(bank(ordo, 3, 2));
}

#[test]
fn nobody_finds_what_was_freed() {
    explore().check(leaves(Counter::default, View::Latest, 4));
    explore().check(leaves(ordo, View::Snapshot, 3));
}
