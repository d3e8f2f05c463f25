//! A gate for updates, which is shut for the moment in which a thread reads the changes of all of
//! them.

use manycore::RawRwLock;
use manycore::lock::Bravo;

/// Open for updates. If it is shut, no update is under way.
#[derive(Default)]
pub(crate) struct Gate(Bravo);

/// An update is under way.
pub(crate) struct Update<'g>(&'g Gate);

/// No update is under way, and none begins.
pub(crate) struct Shut<'g>(&'g Gate);

impl Gate {
    /// Begins an update: waits while the gate is shut. Must not be called in an update.
    pub fn enter(&self) -> Update<'_> {
        self.0.acquire_read();
        Update(self)
    }

    /// Waits until no update is under way. Must not be called in one.
    pub fn shut(&self) -> Shut<'_> {
        self.0.acquire_write();
        Shut(self)
    }
}

impl Drop for Update<'_> {
    fn drop(&mut self) {
        // SAFETY: `enter` has acquired it for this, and it is released here only.
        unsafe { self.0.0.release_read() };
    }
}

impl Drop for Shut<'_> {
    fn drop(&mut self) {
        // SAFETY: `shut` has acquired it for this, and it is released here only.
        unsafe { self.0.0.release_write() };
    }
}
