//! Disks: blocks that are read, written, and flushed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4096;

/// The bytes of a block.
pub type Block = [u8; BLOCK_BYTES];

/// The disk does not do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceError;

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the disk has failed to read or write")
    }
}

impl core::error::Error for DeviceError {}

/// A disk. Written data survives a crash if a flush has returned since. Before that, any part of it
/// may survive, in units of 512 bytes.
pub trait Device {
    /// How many blocks it has.
    fn blocks(&self) -> u64;

    /// Reads a block that it has.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError>;

    /// Writes one.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError>;

    /// Waits until all that was written is durable.
    ///
    /// # Errors
    ///
    /// If the disk fails: then it is not known what is.
    fn flush(&mut self) -> Result<(), DeviceError>;
}

/// A disk in memory.
#[derive(Clone, Debug)]
pub struct MemoryDisk(Vec<Box<Block>>);

impl MemoryDisk {
    /// With this many blocks of zeros.
    pub fn new(blocks: usize) -> Self {
        Self((0..blocks).map(|_| zeros()).collect())
    }
}

/// A block of zeros, made where it stays.
#[must_use]
pub fn zeros() -> Box<Block> {
    let zeros = alloc::vec![0_u8; BLOCK_BYTES].into_boxed_slice();
    zeros.try_into().expect("as many as a block has")
}

fn number(block: u64) -> usize {
    usize::try_from(block).expect("a block of this disk")
}

impl Device for MemoryDisk {
    fn blocks(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        into.copy_from_slice(&self.0[number(block)][..]);
        Ok(())
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        self.0[number(block)].copy_from_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Writes bytes to blocks that follow each other, the last one filled up with zeros.
pub(crate) fn write_bytes<D: Device>(
    device: &mut D,
    first: u64,
    bytes: &[u8],
) -> Result<(), DeviceError> {
    for (block, part) in (first..).zip(bytes.chunks(BLOCK_BYTES)) {
        let mut data: Box<Block> = zeros();
        data[..part.len()].copy_from_slice(part);
        device.write(block, &data)?;
    }
    Ok(())
}

/// Reads bytes from blocks that follow each other.
pub(crate) fn read_bytes<D: Device>(
    device: &D,
    first: u64,
    length: usize,
) -> Result<Vec<u8>, DeviceError> {
    let (mut bytes, mut block) = (Vec::new(), zeros());
    for number in 0..length.div_ceil(BLOCK_BYTES) {
        device.read(first + number as u64, &mut block)?;
        bytes.extend_from_slice(&block[..]);
    }
    bytes.truncate(length);
    Ok(bytes)
}
