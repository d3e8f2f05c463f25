//! Callbacks that use what calls them.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use manycore::reclaim::{Config, Domain, Handle};

fn domain() -> &'static Domain {
    Box::leak(Box::new(Domain::new(Config::default())))
}

/// Objects that another thread retires now are not destroyed before the calling thread's section
/// ends.
fn is_inside(domain: &Domain) -> bool {
    let dropped = Arc::new(AtomicBool::new(false));
    thread::scope(|s| {
        s.spawn(|| {
            let mut handle = domain.register();
            let dropped = Arc::clone(&dropped);
            handle.pin().defer(move || dropped.store(true, Relaxed));
            (0..10).for_each(|_| handle.collect_now());
        });
    });
    !dropped.load(Relaxed)
}

#[test]
fn a_section_within_repin_after_protects() {
    let domain = domain();
    let handle = domain.register();
    let mut guard = handle.pin();
    assert!(is_inside(domain));
    guard.repin_after(|| {
        assert!(!is_inside(domain));
        let inner = handle.pin();
        assert!(is_inside(domain), "a guard that protects nothing");
        drop(inner);
        assert!(!is_inside(domain) && !handle.is_pinned());
    });
    assert!(is_inside(domain) && handle.is_pinned());
    // One that outlives it.
    let inner = guard.repin_after(|| handle.pin());
    guard.repin();
    assert!(is_inside(domain));
    drop(guard);
    assert!(is_inside(domain));
    drop(inner);
    assert!(!is_inside(domain) && !handle.is_pinned());
}

#[test]
fn a_guard_that_is_leaked_protects() {
    let domain = domain();
    let handle = domain.register();
    let mut guard = handle.pin();
    let leaked = guard.repin_after(|| Box::leak(Box::new(handle.pin())));
    guard.repin();
    drop(guard);
    assert!(is_inside(domain));
    let _ = leaked.handle();
}

thread_local! {
    static HANDLE: RefCell<Option<&'static Handle<'static>>> = const { RefCell::new(None) };
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// Runs when the value is dropped, in a section of the handle whose section has ended.
struct PinsOnDrop(&'static Domain);

impl Drop for PinsOnDrop {
    fn drop(&mut self) {
        let Some(handle) = HANDLE.with_borrow(|handle| *handle) else { return };
        let guard = handle.pin();
        if SEEN.get() == 0 {
            assert!(is_inside(self.0), "a destructor's section protects nothing");
        }
        SEEN.set(SEEN.get() + 1);
        drop(guard);
    }
}

#[test]
fn sections_of_destructors_protect() {
    let domain = domain();
    for by_repin in [true, false] {
        let handle: &'static Handle = Box::leak(Box::new(domain.register()));
        HANDLE.set(Some(handle));
        SEEN.set(0);
        let mut guard = handle.pin();
        // This thread does not collect the results of `is_inside`, so only the first destructors
        // ask for it.
        while SEEN.get() < 20 {
            let looks = PinsOnDrop(domain);
            guard.defer(move || drop(looks));
            if by_repin {
                guard.repin();
            } else {
                drop(guard);
                guard = handle.pin();
            }
        }
        assert!(is_inside(domain), "inside again");
        HANDLE.set(None);
    }
}

#[test]
fn destructors_may_use_the_process_domain() {
    use manycore::reclaim;
    static DONE: AtomicU64 = AtomicU64::new(0);
    fn chain(depth: u64) {
        reclaim::section(|guard| {
            guard.defer(move || {
                DONE.fetch_add(1, Relaxed);
                if depth > 0 {
                    chain(depth - 1);
                }
            });
        });
    }
    (0..crate::ROUNDS).for_each(|_| chain(3));
    for _ in 0..8 {
        reclaim::synchronize();
    }
    assert_eq!(DONE.load(Relaxed), 4 * crate::ROUNDS);
}
