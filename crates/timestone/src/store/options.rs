//! What can be chosen when a store is opened.

use std::time::Duration;

use super::operation::Operations;
use super::shared::Settings;
use super::terms::{Durability, Isolation};

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The size of the journal of a new store. When it is half full, an image is written; if
    /// commits fill the other half before that is done, they wait. 128 MiB; at least 1 MiB.
    pub journal_bytes: u64,
    /// The size of the address range for objects. Memory is used only for existing objects. 64 GiB;
    /// at least 8 MiB.
    pub heap_bytes: usize,
    /// The size of each thread's ring of records, rounded up to a power of two. A transaction's
    /// record takes at most half of it. 256 KiB; at least 4 KiB.
    pub ring_bytes: usize,
    /// When commits return, for transactions without terms of their own. On the disk.
    pub durability: Durability,
    /// Which effects of others transactions may see, without terms of their own. A snapshot.
    pub isolation: Isolation,
    /// How long a [`Buffered`](Durability::Buffered) commit stays with the operating system before
    /// a flush, and how long a commit of [`submit`](super::Member::submit) stays in memory if no
    /// thread waits for it. 10 ms.
    pub window: Duration,
    /// The largest number of 16 KiB segments of a thread's log of versions. 256.
    pub log_segments: usize,
    /// The operations that the program may call, and that recovery may run again. None.
    pub operations: Operations,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            journal_bytes: 128 << 20,
            heap_bytes: 64 << 30,
            ring_bytes: 256 << 10,
            durability: Durability::Durable,
            isolation: Isolation::Snapshot,
            window: Duration::from_millis(10),
            log_segments: 256,
            operations: &[],
        }
    }
}

impl Options {
    /// A journal of this length.
    #[must_use]
    pub fn with_journal_bytes(self, journal_bytes: u64) -> Self {
        Self { journal_bytes, ..self }
    }

    /// This number of bytes of addresses for objects.
    #[must_use]
    pub fn with_heap_bytes(self, heap_bytes: usize) -> Self {
        Self { heap_bytes, ..self }
    }

    /// Rings of this length.
    #[must_use]
    pub fn with_ring_bytes(self, ring_bytes: usize) -> Self {
        Self { ring_bytes, ..self }
    }

    /// Another default for transactions.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Another default for transactions.
    #[must_use]
    pub fn with_isolation(self, isolation: Isolation) -> Self {
        Self { isolation, ..self }
    }

    /// Another window.
    #[must_use]
    pub fn with_window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Sets the operations, each of which has a name and a version of its own: see
    /// [`Operation`](super::Operation).
    #[must_use]
    pub fn with_operations(self, operations: Operations) -> Self {
        Self { operations, ..self }
    }

    pub(super) fn journal_bytes(&self) -> u64 {
        self.journal_bytes.max(1 << 20)
    }

    /// What threads need to know of them.
    pub(super) fn settings(&self) -> Settings {
        let Self { durability, isolation, window, .. } = *self;
        let ring_words = (self.ring_bytes / 8).max(512).next_power_of_two();
        Settings { durability, isolation, window, ring_words, journal_bytes: self.journal_bytes() }
    }
}
