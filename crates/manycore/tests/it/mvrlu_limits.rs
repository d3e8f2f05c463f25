//! MV-RLU at its limits: a stalled reader, full logs, reused memory, contended objects.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use manycore::clock::{Clock, Counter, Ordo};
use manycore::collections::hash::MvrluTable;
use manycore::mvrlu::{Config, Domain, Handle, Stall};
use manycore::session::{self, Conflict, Link, RawSession, View};
use manycore::{ConcurrentMap, MapHandle, sync};
use manycore_history::run::unless_interpreted;

/// Small logs, so that they go round.
fn small() -> Config {
    Config::default().with_segment_bytes(1024).with_segments(3).with_segments_max(8)
}

/// A little random number.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 40) as usize
}

/// While a reader stays, writers fill their logs and wait, and the report names the reader. After
/// it has left, all operations complete.
#[test]
fn a_reader_that_stalls_is_named_and_then_all_goes_on() {
    const WRITERS: u64 = 3;
    const EACH: u64 = unless_interpreted(2_000, 200);
    let (told, reports) = mpsc::channel::<Stall>();
    let config = small()
        .with_patience(Duration::from_millis(10))
        .with_on_stall(move |stall| _ = told.send(*stall));
    let domain = Domain::new(Ordo::measured(), config);
    let (inside, is_inside) = mpsc::channel();
    let leave = AtomicBool::new(false);
    session::scope(&domain, |scope| {
        let counter = scope.register().create(0_u64);
        thread::scope(|s| {
            let leave = &leave;
            s.spawn(move || {
                scope.register().read(|snapshot| {
                    let before = *snapshot.deref(counter);
                    inside.send((sync::thread::id(), sync::clock::now())).unwrap();
                    while !leave.load(Ordering::Acquire) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    assert_eq!(*snapshot.deref(counter), before, "a snapshot is of one moment");
                });
            });
            let (reader, entered) = is_inside.recv().unwrap();
            for _ in 0..WRITERS {
                s.spawn(move || {
                    let mut member = scope.register();
                    for _ in 0..EACH {
                        member.run(|tx| {
                            *tx.try_lock(counter)? += 1;
                            Ok(())
                        });
                    }
                });
            }
            // A writer that has lost its CPU in a session may be reported as well, but at the end
            // there is only the reader.
            let stall = reports.iter().find(|stall| stall.thread == reader).unwrap();
            assert!(stall.stamp <= entered, "{stall:?}, inside since {entered} or before");
            let high = 1024 * 8 * 75 / 100;
            assert!((high..=1024 * 8).contains(&stall.bytes), "{stall:?}");
            leave.store(true, Ordering::Release);
        });
        let sum = scope.register().read(|snapshot| *snapshot.deref(counter));
        assert_eq!(sum, WRITERS * EACH, "increments");
    });
    let stats = domain.stats();
    assert!(stats.forced > 0 && stats.grown <= (WRITERS + 1) * 5, "{stats:?}");
    assert_eq!(stats.commits, WRITERS * EACH);
}

/// With many megabytes of objects their memory is in large pages, and threads get parts of these at
/// once: no two objects share a place. Only the rest of each thread's last chunk is unused.
#[test]
#[cfg(not(miri))]
fn memory_of_many_objects_is_given_out_once() {
    const EACH: u64 = 50_000;
    type Leaf = [u64; 62];
    let domain = Domain::new(Ordo::measured(), Config::default());
    session::scope(&domain, |scope| {
        thread::scope(|s| {
            for me in 0..2 {
                s.spawn(move || {
                    let mut member = scope.register();
                    let leaf = |number| [me * EACH + number; 62] as Leaf;
                    let leaves: Vec<_> =
                        (0..EACH).map(|number| member.create(leaf(number))).collect();
                    member.read(|now| {
                        for (number, place) in leaves.iter().enumerate() {
                            assert_eq!(*now.deref(*place), leaf(number as u64));
                        }
                    });
                });
            }
        });
    });
    let needed = 2 * EACH as usize * (size_of::<Leaf>() + 16);
    let got = domain.object_bytes();
    assert!((needed..needed + (8 << 20)).contains(&got), "{got} bytes for {needed}");
}

/// A snapshot that stays open keeps all later versions. A writer goes on meanwhile, as long as its
/// log may grow, and rarely checks whether the snapshot is over.
#[test]
fn writers_go_on_beside_a_long_snapshot() {
    const CHANGES: u64 = unless_interpreted(20_000, 500);
    let domain = Domain::new(Ordo::measured(), Config::default().with_log_bytes(32 << 20));
    session::scope(&domain, |scope| {
        // Half of a kilobyte, like a leaf of a tree.
        let leaf = scope.register().create([0_u64; 64]);
        scope.register().read(|snapshot| {
            let before = domain.stats();
            let mut writer = scope.register();
            for number in 1..=CHANGES {
                writer.run(|tx| {
                    tx.try_lock(leaf)?[63] = number;
                    Ok(())
                });
            }
            assert_eq!(snapshot.deref(leaf)[63], 0, "a snapshot is of one moment");
            let stats = domain.stats();
            assert_eq!(stats.forced, before.forced, "a wait for room: {stats:?}");
            let looks = stats.periods - before.periods;
            assert!(looks <= CHANGES / 32, "{looks} looks for a grace period");
        });
        scope.register().read(|now| assert_eq!(now.deref(leaf)[63], CHANGES));
    });
}

/// After two conflicts a session waits in a queue, but not for ever: here another session of the
/// same thread is at the head of the queue, so the thread would otherwise wait for itself.
#[test]
fn a_turn_that_is_kept_keeps_nobody_for_long() {
    let domain = Domain::new(Ordo::measured(), Config::default());
    let (mut owner, mut first, mut second) =
        (domain.register(), domain.register(), domain.register());
    // SAFETY: sessions from begin to end, on handles of one domain.
    unsafe {
        owner.begin(View::Latest);
        let number = owner.alloc(0_u64);
        owner.commit().unwrap();
        owner.begin(View::Latest);
        *owner.try_lock(number).unwrap() = 1;
        for handle in [&mut first, &mut second] {
            for attempts in 0..2 {
                handle.begin(View::Latest);
                assert_eq!(handle.try_lock(number).unwrap_err(), Conflict::Locked);
                handle.abort();
                handle.back_off(Conflict::Locked, attempts);
            }
            // The first takes the queue here, and keeps it; the second waits for a while.
            handle.begin(View::Latest);
        }
        owner.commit().unwrap();
        *second.try_lock(number).unwrap() += 1;
        second.commit().unwrap();
        *first.try_lock(number).unwrap() += 1;
        first.commit().unwrap();
        owner.begin(View::Latest);
        assert_eq!(*owner.deref(number), 3);
        owner.commit().unwrap();
    }
}

/// Without a blocking session a log always has room: its thread discards old versions before it is
/// full.
#[test]
fn nobody_waits_for_room_if_nobody_stalls() {
    const COUNTERS: usize = unless_interpreted(1_000, 10);
    let domain = Domain::new(Ordo::measured(), Config::default());
    session::scope(&domain, |scope| {
        let mut member = scope.register();
        let counters: Vec<_> = (0..COUNTERS).map(|_| member.create(0_u64)).collect();
        for round in 0..unless_interpreted(100_000, 2_000) {
            member.run(|tx| {
                *tx.try_lock(counters[round % COUNTERS])? += 1;
                Ok(())
            });
        }
    });
    let stats = domain.stats();
    assert!(stats.forced == 0 && stats.grown == 0 && stats.aborts == 0, "{stats:?}");
    assert!(stats.reclaims > 0, "{stats:?}");
}

/// A number twice, made anew for each change.
#[derive(Clone, Copy)]
struct Leaf {
    number: u64,
    twice: u64,
}

#[derive(Clone, Copy)]
struct Root {
    number: u64,
    leaf: Link<Leaf>,
}

/// A session that changes a leaf, or only reads it.
fn change_or_look<C: Clock>(
    handle: &mut Handle<'_, C>,
    root: Link<Root>,
    changes: bool,
    view: View,
) -> Result<(), Conflict> {
    // SAFETY: a session from begin to end; a leaf is freed when the root does not lead to it any
    // more.
    unsafe {
        handle.begin(view);
        let Root { number, leaf } = *handle.deref(root);
        let found = *handle.deref(leaf);
        assert!(found.number == number && found.twice == 2 * number, "a leaf that was freed");
        let mut change = || {
            let place = handle.try_lock(root)?;
            let Root { number, leaf } = *place;
            let new = Leaf { number: number + 1, twice: 2 * number + 2 };
            *place = Root { number: number + 1, leaf: handle.alloc(new) };
            handle.free(leaf)
        };
        let result = if changes { change() } else { Ok(()) };
        match result {
            Ok(()) => handle.commit().unwrap(),
            Err(_) => handle.abort(),
        }
        result
    }
}

/// More threads than CPUs, in waves, so that records change hands; objects are freed, and no thread
/// finds a freed one.
#[test]
fn what_is_freed_is_used_again_and_nobody_finds_it() {
    const ROOTS: usize = 8;
    let domain = Domain::new(Ordo::measured(), small());
    let make = |number: u64| {
        let mut handle = domain.register();
        // SAFETY: the session ends in this block, and what it has found stays until then.
        unsafe {
            handle.begin(View::Latest);
            let leaf = handle.alloc(Leaf { number, twice: 2 * number });
            let root = handle.alloc(Root { number, leaf });
            handle.commit().unwrap();
            root
        }
    };
    let roots: Vec<_> = (0..ROOTS as u64).map(make).collect();
    let changed = AtomicU32::new(0);
    for wave in 0..unless_interpreted(4, 2) {
        thread::scope(|s| {
            for me in 0..unless_interpreted(16_u64, 3) {
                let (domain, roots, changed) = (&domain, &roots, &changed);
                s.spawn(move || {
                    let mut random = wave * 16 + me;
                    let mut handle = domain.register();
                    for _ in 0..unless_interpreted(500, 20) {
                        let root = roots[next(&mut random) % ROOTS];
                        let changes = next(&mut random).is_multiple_of(2);
                        let latest = next(&mut random).is_multiple_of(2);
                        let view = if latest { View::Latest } else { View::Snapshot };
                        let mut attempts = 0;
                        while let Err(conflict) = change_or_look(&mut handle, root, changes, view) {
                            // SAFETY: `commit` has failed, which has ended the session.
                            unsafe { handle.back_off(conflict, attempts) };
                            attempts += 1;
                        }
                        changed.fetch_add(u32::from(changes), Ordering::Relaxed);
                    }
                });
            }
        });
    }
    let (stats, changed) = (domain.stats(), u64::from(changed.into_inner()));
    assert_eq!(stats.commits, changed);
    // Objects freed by the last sessions may wait in the logs, up to the available room; in the
    // interpreter, with its few operations, that is a large part of all.
    let least = changed / unless_interpreted(2, 10);
    assert!(stats.freed > least && stats.freed <= changed, "{stats:?}, {changed} changes");
}

/// Sets the first if the second is not set, in two transactions at the same time; returns whether
/// both have committed.
fn both_commit(locks: bool) -> bool {
    let domain = Domain::new(Counter::default(), Config::default());
    let (mut one, mut two) = (domain.register(), domain.register());
    // SAFETY: sessions from begin to end; nothing is freed.
    unsafe {
        one.begin(View::Latest);
        let claims = [one.alloc(false), one.alloc(false)];
        one.commit().unwrap();
        let claim = |handle: &mut Handle<'_, Counter>, mine: Link<bool>, other: Link<bool>| {
            if locks && handle.try_lock_const(other).is_err() {
                return false;
            }
            assert!(!*handle.deref(other));
            handle.try_lock(mine).map(|mine| *mine = true).is_ok()
        };
        one.begin(View::Snapshot);
        two.begin(View::Snapshot);
        let done = [claim(&mut one, claims[0], claims[1]), claim(&mut two, claims[1], claims[0])];
        for (handle, done) in [&mut one, &mut two].into_iter().zip(done) {
            if done { handle.commit().unwrap() } else { handle.abort() }
        }
        done == [true; 2]
    }
}

#[test]
fn write_skew_is_possible_unless_what_is_read_is_locked() {
    assert!(both_commit(false));
    assert!(!both_commit(true));
}

/// A thread that learns of a commit from another thread sees it, whether commits wait for the
/// clocks or snapshots do.
#[test]
fn no_finished_commit_is_missed() {
    const LAST: u32 = unless_interpreted(20_000, 50);
    for hysteresis in [0, 10, u32::MAX] {
        let domain = Domain::new(Ordo::measured(), Config::default().with_hysteresis(hysteresis));
        let told = AtomicU32::new(0);
        session::scope(&domain, |scope| {
            let number = scope.register().create(0_u32);
            thread::scope(|s| {
                s.spawn(|| {
                    let mut member = scope.register();
                    for next in 1..=LAST {
                        member.run(|tx| {
                            *tx.try_lock(number)? = next;
                            Ok(())
                        });
                        told.store(next, Ordering::Release);
                    }
                });
                let mut member = scope.register();
                loop {
                    let known = told.load(Ordering::Acquire);
                    let seen = member.read(|now| *now.deref(number));
                    assert!(seen >= known, "{seen} is seen after {known} was told of");
                    if known == LAST {
                        break;
                    }
                }
            });
        });
    }
}

/// The hottest of 10,000 keys gets 10.2 % of all changes. Chains stay short nevertheless: the test
/// counts the versions that readers pass over.
#[test]
fn keys_that_everybody_wants_have_short_chains() {
    const KEYS: u64 = unless_interpreted(10_000, 50);
    const ROUNDS: usize = unless_interpreted(200_000, 500);
    let table = MvrluTable::<u64, u64>::new(1_000);
    let (mut writer, mut reader) = (ConcurrentMap::handle(&table), ConcurrentMap::handle(&table));
    (0..KEYS).for_each(|key| _ = writer.insert(key, 0));
    let mut sum = 0.0;
    let ranks: Vec<f64> = (1..=KEYS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut random = 1;
    let mut draw = || {
        let at = next(&mut random) as f64 / f64::from(1 << 24) * sum;
        ranks.partition_point(|up_to| *up_to <= at) as u64
    };
    let before = table.domain().stats();
    let mut reads = 0;
    for round in 0..ROUNDS {
        MapHandle::insert(&mut writer, draw(), round as u64);
        if round.is_multiple_of(10) {
            let key = draw();
            reads += 1;
            reader.snapshot(|now| assert!(now.get(&key).is_some()));
        }
    }
    drop((writer, reader));
    let stats = table.domain().stats();
    let hops = (stats.hops - before.hops) as f64 / (ROUNDS + reads) as f64;
    // A walk is over six nodes on average, some of which have a version.
    assert!(hops < 6.0, "{hops} versions an operation, {stats:?}");
}

/// A handle for each operation behaves like one handle for all: it searches for grace periods as
/// often, and old versions do not pile up.
#[test]
fn short_lived_handles_do_as_one_that_stays() {
    const CHANGES: u64 = unless_interpreted(20_000, 500);
    let periods = |is_short: bool| {
        let table = MvrluTable::<u64, u64>::new(64);
        let mut stays = ConcurrentMap::handle(&table);
        for change in 0..CHANGES {
            let (key, value) = (change % 100, change);
            if is_short {
                MapHandle::insert(&mut ConcurrentMap::handle(&table), key, value);
            } else {
                MapHandle::insert(&mut stays, key, value);
            }
        }
        table.domain().stats().periods
    };
    let (short, long) = (periods(true), periods(false));
    assert!(2 * short >= long && short <= 2 * long, "{short} grace periods rather than {long}");
}
