//! Where a chain of frames is in its file.

use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result};

/// A part of a file that is filled from its start to its end, and then again from its start.
///
/// A *position* counts all bytes that were ever put into the region. So when a frame wraps around
/// the end of the region, the next frame's position is the same as without the wrap.
#[derive(Clone)]
pub struct Region {
    device: Arc<dyn Device>,
    file: &'static str,
    first: u64,
    bytes: u64,
}

impl Region {
    /// `bytes` bytes of a file from `first` on.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] if the file is too short; the device's errors.
    pub fn new(
        device: Arc<dyn Device>,
        file: &'static str,
        first: u64,
        bytes: u64,
    ) -> Result<Self> {
        let size = device.size().map_err(Error::io(format!("find the length of {file}")))?;
        if size < first + bytes {
            let what = format!("it is cut off: it had {} bytes", first + bytes);
            return Err(Error::Corrupted { file, offset: size, what });
        }
        Ok(Self { device, file, first, bytes })
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// An error that is found at a position.
    pub fn corrupted(&self, position: u64, what: impl Into<String>) -> Error {
        Error::Corrupted { file: self.file, offset: self.offset(position), what: what.into() }
    }

    /// Where a position is in the file.
    pub fn offset(&self, position: u64) -> u64 {
        self.first + position % self.bytes.max(1)
    }

    /// How many of `length` bytes from a position on are before the region's end.
    fn before_end(&self, position: u64, length: usize) -> usize {
        let rest = self.bytes - position % self.bytes.max(1);
        usize::try_from(rest).map_or(length, |rest| rest.min(length))
    }

    /// Fills the buffer, which is not longer than the region.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn read(&self, position: u64, into: &mut [u8]) -> Result<()> {
        let (head, tail) = into.split_at_mut(self.before_end(position, into.len()));
        let doing = || format!("read {} at byte {}", self.file, self.offset(position));
        self.device.read_at(self.offset(position), head).map_err(Error::io(doing()))?;
        if tail.is_empty() {
            return Ok(());
        }
        self.device.read_at(self.first, tail).map_err(Error::io(doing()))
    }

    /// Writes the bytes, which are not more than the region has.
    ///
    /// # Errors
    ///
    /// The device's errors. A part of the bytes may have been written.
    pub fn write(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let (head, tail) = bytes.split_at(self.before_end(position, bytes.len()));
        let doing = || format!("write {} at byte {}", self.file, self.offset(position));
        self.device.write_at(self.offset(position), head).map_err(Error::io(doing()))?;
        if tail.is_empty() {
            return Ok(());
        }
        self.device.write_at(self.first, tail).map_err(Error::io(doing()))
    }

    /// Returns when all that was written is on the disk.
    ///
    /// # Errors
    ///
    /// The device's errors: the disk's contents are then unknown.
    pub fn flush(&self) -> Result<()> {
        self.device.flush().map_err(Error::io(format!("flush {}", self.file)))
    }
}
