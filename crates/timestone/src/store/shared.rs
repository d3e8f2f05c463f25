//! What the threads of a store have in common, and what each has for itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::domain::Handle;
use super::flusher::Flusher;
use super::options::Options;
use super::reads::Reads;
use crate::error::Result;
use crate::heap::Heap;
use crate::ring::{Writer, ring};

/// What threads have in common.
pub struct Shared {
    pub flusher: Arc<Flusher>,
    pub heap: Arc<Heap>,
    pub options: Options,
    /// What keys are hashed with.
    pub seed: u64,
    /// The catalog is known to speak of objects of the program's own.
    pub has_own: AtomicBool,
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
    /// The stamp of this thread's last commit.
    pub last: u64,
}

impl<'s> Thread<'s> {
    pub fn new(shared: &'s Shared) -> Result<Self> {
        let words = shared.options.ring_words();
        let (writer, reader) = ring(words);
        let handle = shared.flusher.domain.register();
        shared.flusher.add(handle.member_id(), reader, words * 8)?;
        Ok(Self { handle, shared, writer, record: Vec::new(), reads: Reads::default(), last: 0 })
    }

    /// Lets the ring be emptied if it is half full: before a transaction, when nothing is locked.
    /// Fails if what commits now can get nowhere.
    pub fn make_room(&mut self) -> Result<()> {
        self.shared.flusher.check()?;
        while !self.writer.has_room() {
            self.shared.flusher.sync()?;
        }
        Ok(())
    }
}
