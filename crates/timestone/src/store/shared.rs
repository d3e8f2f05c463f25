//! The data that the threads of a store share, and the data that each has for itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::calling::{Calling, Known};
use super::domain::Handle;
use super::flusher::Flusher;
use super::reads::Reads;
use super::terms::{Durability, Isolation};
use crate::error::Result;
use crate::heap::Heap;
use crate::ring::{Writer, ring};

/// What threads need to know of the options.
#[derive(Clone, Copy)]
pub struct Settings {
    /// When commits return, for transactions without terms of their own.
    pub durability: Durability,
    /// Which effects of others transactions may see, without terms of their own.
    pub isolation: Isolation,
    /// How long a commit stays in memory if no thread waits for it.
    pub window: Duration,
    /// Words of each thread's ring.
    pub ring_words: usize,
    /// The length of the journal of backups, if the store is in memory.
    pub journal_bytes: u64,
}

/// What threads have in common.
pub struct Shared {
    pub flusher: Arc<Flusher>,
    pub heap: Arc<Heap>,
    pub settings: Settings,
    /// What keys are hashed with.
    pub seed: u64,
    /// Whether the catalog is known to mention objects of the program's own.
    pub has_own: AtomicBool,
    /// The operations that the program has registered.
    pub operations: Vec<Known>,
}

/// What a thread has for itself.
pub struct Thread<'s> {
    pub handle: Handle<'s>,
    pub shared: &'s Shared,
    pub writer: Writer,
    /// The record of the transaction that commits: kept for its memory.
    pub record: Vec<u64>,
    /// What the transaction has read.
    pub reads: Reads,
    /// Which operation the transaction is.
    pub calling: Calling,
    /// The stamp of this thread's last commit.
    pub last: u64,
}

impl<'s> Thread<'s> {
    pub fn new(shared: &'s Shared) -> Result<Self> {
        let words = shared.settings.ring_words;
        let (writer, reader) = ring(words);
        let handle = shared.flusher.domain.register();
        shared.flusher.add(handle.member_id(), reader, words * 8)?;
        let (record, reads, calling) = Default::default();
        Ok(Self { handle, shared, writer, record, reads, calling, last: 0 })
    }

    /// Empties the ring if it is half full. Called before a transaction, when nothing is locked.
    /// Fails if the commits in the ring cannot be written anywhere.
    pub fn make_room(&mut self) -> Result<()> {
        self.shared.flusher.check()?;
        while !self.writer.has_room() {
            self.shared.flusher.sync()?;
        }
        Ok(())
    }
}
