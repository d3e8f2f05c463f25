//! A value that is read under a guard and replaced: the read value is consistent, and is not
//! dropped yet.

use std::sync::Arc;

use loom::thread;
use manycore::reclaim::{Atomic, Config, Domain};

use crate::check;
use crate::hash_map::Seen;

/// A number that the model sees written, read and dropped.
struct Number(Seen);

impl Number {
    fn new(number: u64) -> Self {
        Self(Seen::new(number))
    }

    fn get(&self) -> u64 {
        self.0.get()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A domain that lives as long as the model's threads, and no longer.
struct Shared {
    value: Atomic<'static, Number>,
    domain: *mut Domain,
}

// SAFETY: the pointer is used by `drop` only.
unsafe impl Send for Shared {}
// SAFETY: `drop`, which uses the pointer, has the only reference.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let domain = Domain::new(Config::default().with_batch(1));
        let domain = Box::into_raw(Box::new(domain));
        // SAFETY: it is valid until `drop`, after which no thread has the value.
        let value = Atomic::new_in(unsafe { &*domain }, Number::new(0));
        Arc::new(Self { value, domain })
    }

    fn domain(&self) -> &Domain {
        // SAFETY: the domain is from a box that `drop` frees.
        unsafe { &*self.domain }
    }

    fn read(&self) -> u64 {
        let handle = self.domain().register();
        let guard = handle.pin();
        self.value.load(&guard).get()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: from a box; the value does not use it when it is dropped.
        drop(unsafe { Box::from_raw(self.domain) });
    }
}

#[test]
fn a_look_at_what_is_replaced() {
    check(2, || {
        let shared = Shared::new();
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || assert!([0, 1].contains(&shared.read())))
        };
        let mut handle = shared.domain().register();
        {
            let guard = handle.pin();
            assert_eq!(shared.value.replace(Number::new(1), &guard).get(), 0);
        }
        handle.collect_now();
        handle.collect_now();
        reader.join().unwrap();
        drop(handle);
        assert_eq!(shared.read(), 1);
    });
}

#[test]
fn two_who_update() {
    check(2, || {
        let shared = Shared::new();
        let add = |shared: &Shared| {
            let handle = shared.domain().register();
            let guard = handle.pin();
            shared.value.update_in(&guard, |number| Number::new(number.get() + 1));
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || add(&shared))
        };
        add(&shared);
        other.join().unwrap();
        assert_eq!(shared.read(), 2);
    });
}
