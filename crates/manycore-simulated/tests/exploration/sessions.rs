//! Programs for any mechanism with sessions: snapshots are of one moment, and no thread finds freed
//! objects.

use manycore_history::history::Clock;
use manycore_history::run::{Explored, Threads};
use manycore_history::snapshot::{self, Isolation};
use manycore_sim::thread;
use manycore_simulated::session::{self, Conflict, Link, RawSession, Sessions, View};
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};

/// Threads change random numbers out of a few; an order explains their reads and writes.
pub fn history<M: Sessions>(
    domain: impl Fn() -> M,
    threads: u32,
    isolation: Isolation,
) -> impl Fn() {
    move || {
        let domain = domain();
        let clock = Clock::new();
        let logs = session::scope(&domain, |all| {
            let objects = {
                let mut member = all.register();
                [(); 3].map(|()| member.create(0_u64))
            };
            Explored.parallel(threads, |me| {
                let (mut member, mut log) = (all.register(), Vec::new());
                for round in 0..3 {
                    let mut seen = snapshot::Transaction::begin(&clock, me);
                    let result = member.attempt(|tx| {
                        // Reads all, changes one or two, and reads again.
                        for (name, object) in (0..).zip(objects) {
                            seen.read(name, *tx.deref(object));
                            if isolation.serializable {
                                tx.try_lock_const(object)?;
                            }
                        }
                        for name in [me % 3, (me + round) % 3] {
                            let data = tx.try_lock(objects[name as usize])?;
                            let version =
                                1 + u64::from(me) * 100 + u64::from(round) * 10 + u64::from(name);
                            if *data != version {
                                seen.write(u64::from(name), *data, version);
                                *data = version;
                            }
                        }
                        for (name, object) in (0..).zip(objects) {
                            seen.read(name, *tx.deref(object));
                        }
                        Ok(())
                    });
                    log.push(match result {
                        Ok(()) => seen.commit(&clock),
                        Err(_) => seen.abort(&clock),
                    });
                }
                log
            })
        });
        let found = Explored.aside(|| snapshot::check(&logs.concat(), isolation));
        if let Err(violation) = found {
            panic!("no order explains it: {violation}");
        }
    }
}

const ACCOUNTS: u32 = 3;

/// Threads transfer between accounts and look at the sum.
pub fn bank<M: Sessions>(domain: impl Fn() -> M, threads: u32, rounds: u32) -> impl Fn() {
    move || {
        let domain = domain();
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

/// A number that is also in a leaf; the leaf is replaced at each change.
#[derive(Clone, Copy)]
struct Root {
    number: u32,
    leaf: Link<u32>,
}

/// Changes the number, and its leaf.
fn change(
    handle: &mut impl RawSession,
    root: Link<Root>,
    number: u32,
    view: View,
) -> Result<(), Conflict> {
    // SAFETY: a session, from begin to end; a leaf is freed when the root does not lead to it any
    // more.
    unsafe {
        handle.begin(view);
        match handle.try_lock(root) {
            Ok(place) => {
                let before = (*place).leaf;
                *place = Root { number, leaf: handle.alloc(number) };
                handle.free(before).expect("no other thread frees it");
                handle.commit().unwrap();
                Ok(())
            }
            Err(conflict) => {
                handle.abort();
                handle.back_off(conflict, 0);
                Err(conflict)
            }
        }
    }
}

/// A thread changes the number, others read it.
pub fn leaves<M: Sessions>(domain: impl Fn() -> M, view: View, changes: u32) -> impl Fn() {
    move || {
        let domain = domain();
        let mut handle = domain.register();
        // SAFETY: the session ends in this block, and what it has found stays until then.
        let root = unsafe {
            handle.begin(View::Latest);
            let leaf = handle.alloc(0);
            let root = handle.alloc(Root { number: 0, leaf });
            handle.commit().unwrap();
            root
        };
        drop(handle);
        thread::parallel(3, |me| {
            let mut handle = domain.register();
            for number in 1..=changes {
                if me == 0 {
                    while change(&mut handle, root, number, view).is_err() {}
                    continue;
                }
                // Judged when the session is over: to end one, which a failure would have to, may
                // take a while.
                // SAFETY: the session ends in this block, and what it has found stays until then.
                let (number, leaf, again) = unsafe {
                    handle.begin(view);
                    let root = &*handle.deref(root);
                    let (number, leaf) = (root.number, &*handle.deref(root.leaf));
                    let seen = (number, *leaf, root.number);
                    handle.commit().unwrap();
                    seen
                };
                assert_eq!(number, leaf, "a leaf that was freed");
                assert_eq!(number, again, "what a session reads has changed");
            }
        });
    }
}

/// A session changes an object, and frees it. A thread that reads the latest version, and has found
/// the object before, reads the data from before the session.
pub fn freed<M: Sessions>(domain: impl Fn() -> M) -> impl Fn() {
    const NEVER: u32 = 1_000;
    move || {
        let domain = domain();
        let moments = AtomicU32::new(0);
        // SAFETY: the session ends in this block, and what it has found stays until then.
        let (root, object) = unsafe {
            let mut handle = domain.register();
            handle.begin(View::Latest);
            let object = handle.alloc(0_u32);
            let root = handle.alloc(object);
            handle.commit().unwrap();
            (root, object)
        };
        thread::parallel(2, |me| {
            let mut handle = domain.register();
            // SAFETY: sessions, from begin to end; the object is freed once, and after that nothing
            // leads to it.
            unsafe {
                if me == 0 {
                    handle.begin(View::Latest);
                    *handle.try_lock(root).expect("no other thread changes it") = Link::NULL;
                    *handle.try_lock(object).expect("no other thread changes it") = NEVER;
                    handle.free(object).expect("no other thread changes it");
                    let own = *handle.deref(object);
                    handle.commit().unwrap();
                    assert_eq!(own, NEVER, "what the session itself has changed");
                    return;
                }
                handle.begin(View::Latest);
                let link = *handle.deref(root);
                // Time for the commit. Relaxed: nothing hangs on it.
                (0..20).for_each(|_| _ = moments.load(Ordering::Relaxed));
                let found = if link.is_null() { 0 } else { *handle.deref(link) };
                handle.commit().unwrap();
                assert_eq!(found, 0, "a value that was never there");
            }
        });
    }
}
