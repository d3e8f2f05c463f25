//! Models of reader-writer locks with preferences and deadlines: each describes one execution.

use std::sync::Arc;

use loom::thread;
use manycore::RawRwLock;
use manycore::lock::{AdaptiveRw, PhaseRw, Preference};
use manycore::sync::Deadline;

use crate::rw::Shared;
use crate::{Mortal, SOON};

pub trait ByPreference: RawRwLock + 'static {
    fn read_until(&self, preference: Preference, deadline: Option<Deadline>) -> bool;
    fn write_until(&self, deadline: Option<Deadline>) -> bool;
    fn try_read(&self, preference: Preference) -> bool;
}

macro_rules! by_preference {
    ($($lock:ident),*) => {$(
        impl ByPreference for $lock {
            fn read_until(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
                self.read_until(preference, deadline)
            }

            fn write_until(&self, deadline: Option<Deadline>) -> bool {
                self.write_until(deadline)
            }

            fn try_read(&self, preference: Preference) -> bool {
                self.try_read(preference)
            }
        }
    )*};
}
by_preference!(PhaseRw, AdaptiveRw);

impl<L: ByPreference> Shared<L> {
    /// Reads and releases, unless the deadline passes first.
    pub fn read_by(&self, preference: Preference, deadline: Option<Deadline>) -> bool {
        let acquired = self.lock.read_until(preference, deadline);
        if acquired {
            self.look();
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { self.lock.release_read() };
        }
        acquired
    }

    /// Writes and releases, unless the deadline passes first.
    pub fn write_by(&self, deadline: Option<Deadline>) -> bool {
        let acquired = self.lock.write_until(deadline);
        if acquired {
            self.change();
        }
        acquired
    }
}

/// Readers that may pass a waiting writer; [`crate::rw`] tests those that may not.
pub fn a_writer_beside_a_reader<L: ByPreference>(shared: Arc<Shared<L>>, writes: u32) {
    let reading = shared.spawn(|s| (0..2).all(|_| s.read_by(Preference::Readers, None)));
    assert!((0..writes).all(|_| shared.write_by(None)));
    assert!(reading.join().unwrap());
    assert!(shared.lock.try_acquire_write());
}

pub fn readers_may_read_again_while_a_writer_waits<L: ByPreference>(shared: Arc<Shared<L>>) {
    assert!(shared.lock.try_read(Preference::Readers));
    let writing = shared.spawn(|s| s.write_by(None));
    assert!(shared.read_by(Preference::Readers, None));
    // SAFETY: acquired at the start of this function, and not released since.
    unsafe { shared.lock.release_read() };
    assert!(writing.join().unwrap());
}

pub fn a_writer_that_gives_up_lets_readers_go_on<L: ByPreference>(shared: Arc<Shared<L>>) {
    assert!(shared.lock.try_read(Preference::Phases));
    let writing = shared.spawn(|s| s.write_by(SOON));
    let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
    // The reader has to come through although this section does not end before.
    assert!(reading.join().unwrap());
    assert!(!writing.join().unwrap());
    // SAFETY: acquired at the start of this function, and not released since.
    unsafe { shared.lock.release_read() };
}

/// A writer gives up while the last reader leaves, and another writer comes by.
pub fn a_writer_that_gives_up_at_the_last_moment<L: ByPreference>(shared: Arc<Shared<L>>) {
    assert!(shared.lock.try_read(Preference::Phases));
    let hasty = shared.spawn(|s| s.write_by(SOON));
    let reading = shared.spawn(|s| s.read_by(Preference::Phases, None));
    // SAFETY: acquired at the start of this function, and not released since.
    unsafe { shared.lock.release_read() };
    shared.write_by(None);
    hasty.join().unwrap();
    assert!(reading.join().unwrap());
}

pub fn a_reader_that_gives_up_does_not_hold_the_lock<L: ByPreference>(shared: Arc<Shared<L>>) {
    assert!(shared.lock.try_acquire_write());
    let reading = shared.spawn(|s| s.read_by(Preference::Phases, SOON));
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { shared.lock.release_write() };
    shared.write_by(None);
    reading.join().unwrap();
    assert!(shared.lock.try_acquire_write());
}

/// The writer comes after the reader, and destroys the lock, although the reader may be on its way
/// out of its release.
pub fn a_writer_may_destroy_the_lock_after_a_reader<L: RawRwLock + 'static>(lock: Arc<Mortal<L>>) {
    assert!(lock.try_acquire_read());
    let writing = thread::spawn({
        let lock = lock.clone();
        move || {
            lock.acquire_write();
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_write() };
            lock.end();
        }
    });
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_read() };
    writing.join().unwrap();
}

pub fn a_reader_may_destroy_the_lock_after_a_writer<L: RawRwLock + 'static>(lock: Arc<Mortal<L>>) {
    lock.acquire_write();
    let reading = thread::spawn({
        let lock = lock.clone();
        move || {
            lock.acquire_read();
            // SAFETY: this thread has acquired it above, and not released it since.
            unsafe { lock.release_read() };
            lock.end();
        }
    });
    // SAFETY: this thread has acquired it above, and not released it since.
    unsafe { lock.release_write() };
    reading.join().unwrap();
}
