//! The operations of an engine: it stores and reads numbers by numbers.

use std::error::Error;
use std::path::Path;

/// What an engine, or the measuring, has failed with.
pub type Failure = Box<dyn Error + Send + Sync>;

/// When a commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Promise {
    /// When it is on the disk.
    Durable,
    /// Earlier: it may be lost by a power cut.
    Eventual,
}

/// A store that is open.
pub trait Engine: Sync {
    /// A thread's access to it.
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure>;
}

/// A thread that works with a store.
pub trait Worker {
    /// The value of a key.
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure>;

    /// Puts a value for each of the keys, in one transaction, which the promise is kept for when
    /// this returns.
    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure>;

    /// As `put`, but the promise is kept for when [`finish`](Self::finish) has returned, or
    /// earlier.
    fn begin_put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        self.put(keys, value)
    }

    /// Waits for what was begun.
    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Opens an engine's store in an empty directory.
pub type Open = fn(&Path, Promise) -> Result<Box<dyn Engine>, Failure>;
