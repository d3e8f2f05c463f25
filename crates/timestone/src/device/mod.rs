//! Where bytes stay: files, or what stands for them in tests.
//!
//! A store has a few files with fixed names. A crash may lose any written sector of a file, in any
//! order, until a flush of that file has returned. A created file may be lost until the names were
//! flushed.

mod faulty;
mod file;
mod simulated;

use std::io;
use std::sync::Arc;

pub use faulty::{Fault, Faulty};
pub use file::Directory;
pub use simulated::{Cut, Recording, SECTOR, Simulated};

/// A file.
pub trait Device: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn size(&self) -> io::Result<u64>;

    /// Fills the buffer from this place on.
    ///
    /// # Errors
    ///
    /// The operating system's errors; `UnexpectedEof` if the file is too short.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes, and lets the file grow if they go past its end.
    ///
    /// # Errors
    ///
    /// The operating system's errors. A part of the bytes may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Returns when all that was written before is on the disk, and the length.
    ///
    /// # Errors
    ///
    /// The operating system's errors. Writes since the last flush may then be lost, even if a later
    /// flush succeeds.
    fn flush(&self) -> io::Result<()>;

    /// Truncates the file to this length, if it is longer. A device that cannot do that does
    /// nothing.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn cut(&self, size: u64) -> io::Result<()> {
        let _ = size;
        Ok(())
    }

    /// For tests of failed flushes: data written since the last flush will never be on the disk,
    /// although reads return it. A device that cannot do that does nothing.
    fn lose_unflushed(&self) {}
}

/// A directory of files.
pub trait Storage: Send + Sync {
    /// A file of this name, which is created empty if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>>;

    /// Returns when the names of all files are on the disk.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    fn flush_names(&self) -> io::Result<()>;
}
