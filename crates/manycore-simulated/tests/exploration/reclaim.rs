//! Grace periods: no object is destroyed while a reader that has found it is pinned, and all are
//! destroyed in the end.

use std::cell::Cell;

use manycore_sim::thread;
use manycore_simulated::reclaim::{Config, Domain, Guard};
use manycore_simulated::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::explore;

/// An object whose memory stays when it is destroyed.
struct Object(Cell<bool>);

impl Object {
    /// For `retire_with`.
    unsafe fn destroy(object: *mut ()) {
        // SAFETY: the memory is there as long as the program.
        let destroyed = unsafe { &(*object.cast::<Self>()).0 };
        assert!(!destroyed.replace(true), "destroyed twice");
    }

    /// # Safety
    ///
    /// No thread finds it any more that has not found it yet, and it is there as long as the
    /// domain.
    unsafe fn retire(&self, guard: &Guard) {
        let object = std::ptr::from_ref(self).cast_mut();
        // SAFETY: it was taken out, and can be destroyed as long as the domain exists (contract of
        // this function).
        unsafe { guard.retire_with(object.cast(), 1, Self::destroy) };
    }
}

/// Threads replace what all of them look at.
fn program(threads: u32, rounds: u32, limit_bytes: usize) -> impl Fn() {
    move || {
        let objects: Vec<_> = (0..=threads * rounds).map(|_| Object(Cell::new(false))).collect();
        let newest = AtomicPtr::new(std::ptr::from_ref(&objects[0]).cast_mut());
        let elsewhere = AtomicU32::new(0);
        let domain = Domain::new(Config::default().with_batch(1).with_limit_bytes(limit_bytes));
        thread::parallel(threads, |me| {
            let handle = domain.register();
            for round in 0..rounds {
                let guard = handle.pin();
                // SAFETY: the memory is there as long as the program.
                let found = unsafe { &*newest.load(Ordering::Acquire) };
                elsewhere.fetch_add(1, Ordering::Relaxed); // Relaxed: takes a step
                assert!(!found.0.get(), "destroyed while a reader is inside");
                let new = std::ptr::from_ref(&objects[(1 + me * rounds + round) as usize]);
                let old = newest.swap(new.cast_mut(), Ordering::AcqRel);
                // SAFETY: the memory is there as long as the program, and the domain ends before
                // it. The swap has taken the object out, and each object comes in once.
                unsafe { (*old).retire(&guard) };
            }
        });
        domain.register().synchronize();
        assert_eq!(domain.held_bytes(), 0);
        let alive = objects.iter().filter(|object| !object.0.get()).count();
        assert_eq!(alive, 1, "all but the newest are destroyed");
    }
}

#[test]
fn nothing_is_destroyed_too_soon() {
    explore().check(program(2, 4, 1 << 20));
    explore().check(program(3, 3, 1 << 20));
}

/// Threads wait for room, and no thread waits for ever.
#[test]
fn with_hardly_any_room() {
    explore().check(program(2, 3, 1));
    explore().check(program(3, 2, 2));
}
