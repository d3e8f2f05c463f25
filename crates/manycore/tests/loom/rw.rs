//! Every reader-writer lock of the registry: a writer is alone, every thread gets in, and sees
//! earlier writes.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread::{self, JoinHandle};
use manycore::{RawRwLock, lock};

use crate::check;

/// A number that is written with the lock held for writing, and read with it held in any way.
pub struct Shared<L> {
    pub lock: L,
    value: UnsafeCell<u32>,
}

// SAFETY: the value is accessed under the lock only; loom fails the test if that does not order the
// accesses.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L: RawRwLock + 'static> Shared<L> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { lock: L::new(), value: UnsafeCell::new(0) })
    }

    fn read(&self) {
        self.lock.acquire_read();
        self.look();
        // SAFETY: this thread has acquired it above, and not released it since.
        unsafe { self.lock.release_read() };
    }

    pub fn look(&self) -> u32 {
        // SAFETY: the lock is held, and keeps other threads away.
        self.value.with(|v| unsafe { *v })
    }

    fn write(&self) {
        self.lock.acquire_write();
        self.change();
    }

    /// Adds one, with the lock held for writing, and releases it.
    pub fn change(&self) {
        // SAFETY: the calling thread holds the lock for writing.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: the calling thread holds the lock for writing.
        unsafe { self.lock.release_write() };
    }

    pub fn spawn<R: 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Self) -> R + 'static,
    ) -> JoinHandle<R> {
        let shared = self.clone();
        thread::spawn(move || f(&shared))
    }

    /// At the end, no thread holds it, and this many threads have written.
    fn assert_written(&self, times: u32) {
        assert!(self.lock.try_acquire_write(), "somebody holds it");
        assert_eq!(self.look(), times);
    }
}

fn a_writer_beside_a_reader<L: RawRwLock + 'static>() {
    check(3, || {
        let shared = Shared::<L>::new();
        let reading = shared.spawn(|s| (0..2).for_each(|_| s.read()));
        shared.write();
        reading.join().unwrap();
        shared.assert_written(1);
    });
}

pub fn two_writers_and_a_reader<L: RawRwLock + 'static>(preemptions: usize) {
    check(preemptions, || {
        let shared = Shared::<L>::new();
        let others = [shared.spawn(Shared::read), shared.spawn(Shared::write)];
        shared.write();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        shared.assert_written(2);
    });
}

pub fn two_readers_and_a_writer<L: RawRwLock + 'static>(preemptions: usize) {
    check(preemptions, || {
        let shared = Shared::<L>::new();
        let reading = [(); 2].map(|()| shared.spawn(Shared::read));
        shared.write();
        reading.into_iter().for_each(|thread| thread.join().unwrap());
        shared.assert_written(1);
    });
}

macro_rules! models {
    ($($lock:ident),* $(,)?) => {
        $(
            #[test]
            #[allow(non_snake_case)]
            fn $lock() {
                a_writer_beside_a_reader::<lock::$lock>();
                two_writers_and_a_reader::<lock::$lock>(1);
                two_readers_and_a_writer::<lock::$lock>(1);
            }
        )*
    };
}
manycore::for_each_rw_lock!(models);

/// A reader moves to another CPU, and counts down there.
#[test]
fn a_reader_that_moves() {
    check(2, || {
        let shared = Shared::<lock::PerCpuRw>::new();
        shared.lock.acquire_read();
        let reading = shared.spawn(|s| {
            s.look();
            // SAFETY: acquired above, and any thread may release this lock.
            unsafe { s.lock.release_read() };
        });
        let writing = shared.spawn(Shared::write);
        shared.read();
        reading.join().unwrap();
        writing.join().unwrap();
        shared.assert_written(1);
    });
}
