//! Handles: several of one thread, forgotten ones, and those that end late.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use manycore::collections::hash::{MvrluGrowingTable, RcuTable, RluTable};
use manycore::collections::list::{HarrisList, LazyList, MvrluList, RcuList};
use manycore::collections::queue::OrderedQueue;
use manycore::collections::stack::TreiberStack;
use manycore::collections::tree::{MvrluTree, RcuTree, RluTree};
use manycore::lock::Adaptive;
use manycore::reclaim::{Config, Domain};
use manycore::session::{self, Sessions};
use manycore::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle, mvrlu, rlu};

/// What `f` panics with.
fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).err().expect("a panic");
    let text = payload.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| payload.downcast_ref::<&str>().copied().unwrap_or_default().to_owned())
}

/// A thread commits by one handle while it has a session open by another. Either that does no harm,
/// or it is reported.
fn commits_in_a_session<M: Sessions>(domain: &M, commits: u64) {
    session::scope(domain, |scope| {
        let (mut one, mut other) = (scope.register(), scope.register());
        let object = one.create(0_u64);
        let said = one.read(|now| {
            assert_eq!(*now.deref(object), 0);
            let said = panic_of(|| {
                (0..commits).for_each(|_| {
                    other.run(|tx| {
                        *tx.try_lock(object)? += 1;
                        Ok(())
                    });
                });
            });
            assert_eq!(*now.deref(object), 0, "a snapshot");
            said
        });
        assert!(said.contains("two handles of a domain"), "{said}");
        let before = one.read(|now| *now.deref(object));
        other.run(|tx| {
            *tx.try_lock(object)? += 1;
            Ok(())
        });
        assert_eq!(one.read(|now| *now.deref(object)), before + 1, "it goes on");
    });
}

#[test]
fn two_handles_of_a_domain() {
    crate::quietly(|| {
        let config = mvrlu::Config::default().with_segments(2).with_segments_max(4);
        commits_in_a_session(
            &mvrlu::Domain::new(manycore::clock::Ordo::default(), config),
            100_000,
        );
        commits_in_a_session(&<rlu::Domain>::default(), 1);
    });
}

#[test]
fn two_handles_of_a_reclamation_domain() {
    crate::quietly(|| {
        let domain = Domain::new(Config::default().with_limit_bytes(1 << 12));
        let (one, mut other) = (domain.register(), domain.register());
        let guard = one.pin();
        let said = panic_of(|| other.synchronize());
        assert!(said.contains("would wait for"), "{said}");
        let said = panic_of(|| domain.synchronize());
        assert!(said.contains("would wait for"), "{said}");
        // The garbage exceeds the limit, and only this thread blocks the epoch: it continues, and
        // that is counted.
        (0..1000).for_each(|n| other.pin().defer(move || _ = std::hint::black_box([n; 8])));
        assert!(domain.overruns() > 0 && domain.held_bytes() > 1 << 12);
        drop(guard);
        other.synchronize();
        assert_eq!(domain.held_bytes(), 0);
    });
}

#[test]
fn objects_that_are_too_large() {
    crate::quietly(|| {
        session::scope(&<mvrlu::Domain>::default(), |scope| {
            let mut member = scope.register();
            let said = panic_of(|| member.create([0_u8; 65_536]));
            assert!(said.contains("65536 bytes: the largest has 32760"), "{said}");
            let said = panic_of(|| member.create([0_u8; 20_000]));
            assert!(said.contains("make Config::segment_bytes larger"), "{said}");
            let object = member.create([0_u8; 8_000]);
            member.run(|tx| tx.try_lock(object).map(|bytes| bytes[7_999] = 1));
            assert_eq!(member.read(|now| now.deref(object)[7_999]), 1);
        });
    });
}

/// Handles are forgotten, one after the other. The structure continues to work, and can be dropped.
fn forgets_sets<S: ConcurrentSet<u64>>(set: S) {
    for key in 0..crate::ROUNDS {
        let mut handle = set.handle();
        assert!(handle.insert(key) && handle.contains(&key));
        assert!(key < 2 || handle.remove(&(key - 2)));
        std::mem::forget(handle);
    }
}

#[test]
fn forgotten_handles() {
    forgets_sets(RcuTable::<u64, (), Adaptive>::new(3, Config::default()));
    forgets_sets(RcuList::<u64, (), Adaptive>::default());
    forgets_sets(LazyList::<u64, Adaptive>::default());
    forgets_sets(HarrisList::<u64>::default());
    forgets_sets(RcuTree::<u64, Adaptive>::default());
    forgets_sets(MvrluTree::<u64, ()>::default());
    forgets_sets(MvrluList::<u64, ()>::default());
    forgets_sets(MvrluGrowingTable::<u64, ()>::default());
    forgets_sets(RluTree::<u64, ()>::default());
    forgets_sets(RluTable::<u64, ()>::new(3));
    let (queue, stack) = (OrderedQueue::<u64>::default(), TreiberStack::<u64>::default());
    for number in 0..crate::ROUNDS {
        let mut handle = queue.handle();
        handle.push(number);
        std::mem::forget(handle);
        let mut handle = stack.handle();
        handle.push(number);
        std::mem::forget(handle);
        assert_eq!((queue.pop(), stack.handle().pop()), (Some(number), Some(number)));
    }
}

#[test]
fn forgotten_guards() {
    let domain = Domain::new(Config::default());
    let handle = domain.register();
    std::mem::forget(handle.pin());
    let mut other = domain.register();
    (0..crate::ROUNDS).for_each(|_| other.pin().defer(|| ()));
    other.collect_now();
    assert!(domain.held_bytes() > 0, "the guard that was forgotten protects");
    drop(handle);
    (0..8).for_each(|_| other.collect_now());
    assert_eq!(domain.held_bytes(), 0);
}

/// A handle for each operation, or a thread for each: the garbage is bounded by that of one handle,
/// and is counted.
fn is_bounded(domain: &Domain, mut once: impl FnMut(u64)) {
    let mut most = 0;
    for number in 0..if cfg!(miri) { 1000 } else { 20_000 } {
        once(number);
        most = most.max(domain.held_bytes());
    }
    assert!(most >= 1 << 10, "bags are counted");
    assert!(most < 256 << 10, "{most} bytes are held");
}

#[test]
fn handles_that_retire_a_little_and_end() {
    let domain = Domain::new(Config::default());
    is_bounded(&domain, |_| domain.register().pin().defer(|| ()));
    let table = RcuTable::<u64, u64, Adaptive>::new(64, Config::default());
    is_bounded(table.domain(), |n| _ = ConcurrentMap::handle(&table).insert(n % 100, n));
    let tree = RcuTree::<u64, Adaptive>::default();
    is_bounded(tree.domain(), |n| {
        let mut handle = tree.handle();
        assert!(handle.insert(n % 100) && handle.remove(&(n % 100)));
    });
    let stack = TreiberStack::<u64>::default();
    is_bounded(stack.domain(), |n| {
        let mut handle = stack.handle();
        handle.push(n);
        handle.pop();
    });
}

#[test]
fn threads_that_retire_a_little_and_end() {
    let domain = Domain::new(Config::default());
    let threads = if cfg!(miri) { 100 } else { 2_000 };
    for _ in 0..threads {
        thread::scope(|s| _ = s.spawn(|| domain.register().pin().defer(|| ())));
    }
    assert!((1 << 10..256 << 10).contains(&domain.held_bytes()), "{}", domain.held_bytes());
    // What they have left, others find.
    let mut other = domain.register();
    let guard = other.pin();
    thread::scope(|s| _ = s.spawn(|| domain.register().pin().defer(|| ())));
    drop(guard);
    (0..8).for_each(|_| other.collect_now());
    assert_eq!(domain.held_bytes(), 0);
}
