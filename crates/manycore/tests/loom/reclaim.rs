//! Grace periods: an object that a reader has found is not destroyed while the reader is pinned,
//! and is destroyed in the end.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicPtr, Ordering};
use loom::thread;
use manycore::reclaim::{BAG_BYTES, Config, Domain, Handle};

use crate::check;

/// An object to be found, whose memory stays when it is destroyed, so that the model sees late
/// readers.
struct Object {
    alive: UnsafeCell<bool>,
}

// SAFETY: the model checks that no thread reads it while it is destroyed.
unsafe impl Sync for Object {}

impl Object {
    fn new() -> Self {
        Self { alive: UnsafeCell::new(true) }
    }

    /// For `retire_with`.
    unsafe fn destroy(object: *mut ()) {
        // SAFETY: the memory is there as long as the test.
        let object = unsafe { &*object.cast::<Self>() };
        // SAFETY: no thread reads it meanwhile: the model checks that.
        object.alive.with_mut(|alive| unsafe {
            assert!(*alive, "destroyed twice");
            *alive = false;
        });
    }

    fn is_alive(&self) -> bool {
        // SAFETY: no thread destroys it meanwhile: that is what the model checks.
        self.alive.with(|alive| unsafe { *alive })
    }
}

/// Two objects, of which one can be found.
struct Shared {
    domain: Domain,
    objects: [Object; 2],
    newest: AtomicPtr<Object>,
}

impl Shared {
    fn new(batch: usize) -> Arc<Self> {
        let domain = Domain::new(Config::default().with_batch(batch));
        let objects = [(); 2].map(|()| Object::new());
        let shared =
            Arc::new(Self { domain, objects, newest: AtomicPtr::new(std::ptr::null_mut()) });
        // Relaxed: no other thread has it.
        shared.newest.store(shared.object(0), Ordering::Relaxed);
        shared
    }

    fn object(&self, number: usize) -> *mut Object {
        std::ptr::from_ref(&self.objects[number]).cast_mut()
    }

    /// A section that reads the newest object.
    fn look(&self, handle: &Handle) {
        let _guard = handle.pin();
        // Acquire: partner of the swap in `replace`.
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: the memory is there as long as the test.
        assert!(unsafe { (*newest).is_alive() }, "destroyed while a reader is inside");
    }

    /// Makes the second object the newest, and retires the first.
    fn replace(&self, handle: &Handle) {
        let guard = handle.pin();
        // Release: partner of the load in `look`.
        let old = self.newest.swap(self.object(1), Ordering::Release);
        // SAFETY: it was there since the beginning, and cannot be found any more.
        unsafe { guard.retire_with(old.cast(), 8, Object::destroy) };
    }

    fn is_first_alive(&self) -> bool {
        self.objects[0].is_alive()
    }
}

/// One thread reads, twice; another replaces and frees.
#[test]
fn pin_against_advance() {
    check(2, || {
        let shared = Shared::new(1);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let handle = shared.domain.register();
                shared.look(&handle);
                shared.look(&handle);
            })
        };
        let mut handle = shared.domain.register();
        shared.replace(&handle);
        handle.collect_now();
        handle.collect_now();
        reader.join().unwrap();
        handle.synchronize();
        assert!(!shared.is_first_alive(), "no thread is inside, and it is still not destroyed");
    });
}

/// The reading thread begins epochs, so the other frees objects without waiting itself.
#[test]
fn another_thread_advances() {
    check(2, || {
        let shared = Shared::new(1);
        let advancer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut handle = shared.domain.register();
                shared.look(&handle);
                handle.collect_now();
                shared.look(&handle);
            })
        };
        let mut handle = shared.domain.register();
        shared.replace(&handle);
        handle.collect_now();
        handle.collect_now();
        advancer.join().unwrap();
    });
}

/// A thread leaves with garbage, which others free.
#[test]
fn garbage_of_one_who_is_gone() {
    check(2, || {
        let shared = Shared::new(2);
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || shared.replace(&shared.domain.register()))
        };
        shared.domain.register().synchronize();
        writer.join().unwrap();
        shared.domain.register().synchronize();
        assert!(!shared.is_first_alive(), "no thread frees what it has left behind");
        assert_eq!(shared.domain.held_bytes(), 0);
    });
}

/// As before, after it has left its garbage where others find it.
#[test]
fn garbage_that_is_looked_for_meanwhile() {
    check(2, || {
        let shared = Shared::new(2);
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut handle = shared.domain.register();
                shared.replace(&handle);
                handle.collect_now();
            })
        };
        shared.domain.register().synchronize();
        writer.join().unwrap();
    });
}

/// A thread leaves, and another has its record, perhaps.
#[test]
fn counts_go_on() {
    check(2, || {
        let shared = Shared::new(2);
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || shared.replace(&shared.domain.register()))
        };
        let bytes = 8_u64;
        let handle = shared.domain.register();
        handle.pin().defer(move || assert_eq!(bytes, 8));
        writer.join().unwrap();
        // In one bag, if the second has the record of the first.
        let bags = shared.domain.held_bytes() - 16;
        assert!(bags == BAG_BYTES || bags == 2 * BAG_BYTES, "{bags}");
        drop(handle);
        // The remaining garbage is still there for a new thread, in the first thread's bag or its
        // own.
        shared.domain.register().synchronize();
        assert_eq!(shared.domain.held_bytes(), 0);
    });
}

/// After `synchronize` no thread reads objects that could be found before, whichever thread begins
/// the epochs.
#[test]
fn synchronize() {
    check(2, || {
        let shared = Shared::new(1);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut handle = shared.domain.register();
                shared.look(&handle);
                (0..3).for_each(|_| handle.collect_now());
                shared.look(&handle);
            })
        };
        // Release: partner of the load in `look`.
        let old = shared.newest.swap(shared.object(1), Ordering::Release);
        shared.domain.synchronize();
        // SAFETY: no thread has it: that is what the model checks.
        unsafe { Object::destroy(old.cast()) };
        reader.join().unwrap();
    });
}
