//! Open files.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use khronos_fs::Stat;
use manycore::sync::CachePadded;

use super::tree::Held;
use crate::call::errno::{Errno, Result};
use crate::mm::area::Source;
use crate::sync::order::Rank;
use crate::sync::sleep::Sleep;

/// Flags of `open`.
#[allow(missing_docs, reason = "Linux' names")]
pub mod flags {
    pub const ACCESS: u32 = 3;
    pub const WRITE_ONLY: u32 = 1;
    pub const READ_WRITE: u32 = 2;
    pub const CREATE: u32 = 0o100;
    pub const EXCLUSIVE: u32 = 0o200;
    pub const TRUNCATE: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const NON_BLOCKING: u32 = 0o4000;
    pub const DIRECTORY: u32 = 0o200_000;
    pub const NO_FOLLOW: u32 = 0o400_000;
    pub const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    pub const PATH: u32 = 0o10_000_000;
}

/// The object behind a descriptor. The default methods are for objects that lack the operation.
pub trait Object: Send + Sync {
    /// Reads bytes, from a position if it has positions. Waits for some unless `wait` is false.
    fn read(&self, _offset: u64, _into: &mut [u8], _wait: bool) -> Result<usize> {
        Err(Errno::INVALID)
    }

    /// Writes bytes, at a position or at the end.
    fn write(&self, _offset: Option<u64>, _from: &[u8], _wait: bool) -> Result<(u64, usize)> {
        Err(Errno::INVALID)
    }

    /// Whether it has positions.
    fn is_seekable(&self) -> bool {
        false
    }

    /// What can be done without waiting: `poll`'s bits.
    fn readiness(&self) -> u32 {
        super::poll::READABLE | super::poll::WRITABLE
    }

    /// What `stat` says.
    fn stat(&self) -> Stat;

    /// A call for devices: a request and its argument.
    fn control(&self, _request: u64, _argument: u64) -> Result<u64> {
        Err(Errno::NOT_TERMINAL)
    }

    /// Its inode, if it belongs to the tree of names.
    fn inode(&self) -> Option<&Held> {
        None
    }

    /// Names of a directory in the form of `getdents64`, from a position on: at most `most` bytes,
    /// and the position at which to continue.
    fn names(&self, _from: u64, _most: usize) -> Result<(Vec<u8>, u64)> {
        Err(Errno::NOT_DIRECTORY)
    }

    /// What a mapping of it has.
    fn source(self: Arc<Self>, _offset: u64, _bytes: u64) -> Result<Source> {
        Err(Errno::NO_DEVICE)
    }
}

/// An open file: an object and a position.
pub struct File {
    /// What was opened.
    pub object: Arc<dyn Object>,
    flags: AtomicU32,
    /// On a line of its own: threads that do not change the position read the other fields.
    position: CachePadded<Sleep<u64>>,
}

impl File {
    /// At position 0.
    pub fn new(object: Arc<dyn Object>, flags: u32) -> Arc<Self> {
        let position = CachePadded(Sleep::new(Rank::File, 0));
        Arc::new(Self { object, flags: AtomicU32::new(flags), position })
    }

    /// How it was opened.
    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed) // Relaxed: a setting
    }

    /// Changes what `fcntl` can.
    pub fn set_flags(&self, flags: u32) {
        let can = flags::APPEND | flags::NON_BLOCKING;
        self.flags.store(self.flags() & !can | flags & can, Ordering::Relaxed); // Relaxed: a setting
    }

    fn waits(&self) -> bool {
        self.flags() & flags::NON_BLOCKING == 0
    }

    /// Whether it may be read.
    pub fn check_readable(&self) -> Result<()> {
        let refused = self.flags() & flags::ACCESS == flags::WRITE_ONLY;
        if refused { Err(Errno::BAD_FILE) } else { Ok(()) }
    }

    /// Whether it may be written.
    pub fn check_writable(&self) -> Result<()> {
        let refused = self.flags() & flags::ACCESS == 0;
        if refused { Err(Errno::BAD_FILE) } else { Ok(()) }
    }

    /// Reads at the file's position, which moves, or at another.
    pub fn read(&self, at: Option<u64>, into: &mut [u8]) -> Result<usize> {
        self.check_readable()?;
        if !self.object.is_seekable() {
            return match at {
                None => self.object.read(0, into, self.waits()),
                Some(_) => Err(Errno::NOT_SEEKABLE),
            };
        }
        if let Some(at) = at {
            return self.object.read(at, into, true);
        }
        let mut position = self.position.lock();
        let bytes = self.object.read(*position, into, true)?;
        *position += bytes as u64;
        Ok(bytes)
    }

    /// Writes at the file's position, which advances, or at another one; or at the end, if the file
    /// was opened for appending.
    pub fn write(&self, at: Option<u64>, from: &[u8]) -> Result<usize> {
        self.check_writable()?;
        if !self.object.is_seekable() {
            return match at {
                None => Ok(self.object.write(None, from, self.waits())?.1),
                Some(_) => Err(Errno::NOT_SEEKABLE),
            };
        }
        if at.is_some() {
            return Ok(self.object.write(at, from, true)?.1);
        }
        let appends = self.flags() & flags::APPEND != 0;
        let mut position = self.position.lock();
        let (start, bytes) = self.object.write((!appends).then_some(*position), from, true)?;
        *position = start + bytes as u64;
        Ok(bytes)
    }

    /// Moves the position; says where it is.
    pub fn seek(&self, offset: i64, whence: u32) -> Result<u64> {
        if !self.object.is_seekable() && self.object.inode().is_none() {
            return Err(Errno::NOT_SEEKABLE);
        }
        let mut position = self.position.lock();
        let from = match whence {
            0 => 0,
            1 => *position,
            2 => self.object.stat().size,
            _ => return Err(Errno::INVALID),
        };
        let wanted = from.checked_add_signed(offset).filter(|&at| at <= i64::MAX as u64);
        *position = wanted.ok_or(Errno::INVALID)?;
        Ok(*position)
    }

    /// The next names of a directory.
    pub fn names(&self, most: usize) -> Result<Vec<u8>> {
        let mut position = self.position.lock();
        let (names, next) = self.object.names(*position, most)?;
        *position = next;
        Ok(names)
    }
}
