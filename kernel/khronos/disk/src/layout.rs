//! Where everything is on a disk, and the super blocks that say so.

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::{Malformed, Reader, checksum};
use crate::device::{BLOCK_BYTES, Block};

/// The fewest blocks of a disk.
pub(crate) const BLOCKS_MIN: u64 = 32;

/// "KhronOS", and the version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"KhronOS\x01");

/// How many blocks the parts of a disk have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub blocks: u64,
    pub journal: u64,
    pub checkpoint: u64,
}

impl Layout {
    /// The layout of a new disk: an eighth is for journals and a quarter for checkpoints, unless
    /// the disk is large.
    pub fn new(blocks: u64) -> Self {
        Self { blocks, journal: (blocks / 16).min(4096), checkpoint: (blocks / 8).min(1 << 16) }
    }

    /// The journal of an epoch.
    pub fn journal_of(&self, epoch: u64) -> Range<u64> {
        let begin = 2 + epoch % 2 * self.journal;
        begin..begin + self.journal
    }

    /// The checkpoint with which an epoch begins.
    pub fn checkpoint_of(&self, epoch: u64) -> Range<u64> {
        let begin = 2 + 2 * self.journal + epoch % 2 * self.checkpoint;
        begin..begin + self.checkpoint
    }

    /// Pages of files.
    pub fn pages(&self) -> Range<u64> {
        2 + 2 * (self.journal + self.checkpoint)..self.blocks
    }

    fn is_possible(&self) -> bool {
        let parts = self.journal.checked_add(self.checkpoint).and_then(|sum| sum.checked_mul(2));
        self.journal > 0 && parts.is_some_and(|parts| parts < self.blocks.saturating_sub(2))
    }
}

/// What a super block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Super {
    pub layout: Layout,
    /// The number of the epoch, which says where its checkpoint and its journal are.
    pub epoch: u64,
    /// The number of its first batch.
    pub batch: u64,
    /// Bytes of the checkpoint, and their checksum.
    pub bytes: u64,
    pub checksum: u32,
}

impl Super {
    /// In which block it is.
    pub fn block(&self) -> u64 {
        self.epoch % 2
    }

    pub fn write(&self, into: &mut Block) {
        let Layout { blocks, journal, checkpoint } = self.layout;
        let numbers = [MAGIC, blocks, journal, checkpoint, self.epoch, self.batch, self.bytes];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend_from_slice(&self.checksum.to_le_bytes());
        bytes.extend_from_slice(&checksum(&[&bytes]).to_le_bytes());
        into.fill(0);
        into[..bytes.len()].copy_from_slice(&bytes);
    }

    pub fn read(block: &Block, blocks: u64) -> Result<Self, Malformed> {
        let mut from = Reader(block);
        if from.u64()? != MAGIC {
            return Err(Malformed);
        }
        let layout = Layout { blocks: from.u64()?, journal: from.u64()?, checkpoint: from.u64()? };
        let (epoch, batch, bytes) = (from.u64()?, from.u64()?, from.u64()?);
        let found = Self { layout, epoch, batch, bytes, checksum: from.u32()? };
        let length = BLOCK_BYTES - from.0.len();
        let is_whole = from.u32()? == checksum(&[&block[..length]]);
        let fits = layout.blocks <= blocks
            && layout.is_possible()
            && bytes.div_ceil(BLOCK_BYTES as u64) <= layout.checkpoint;
        if is_whole && fits { Ok(found) } else { Err(Malformed) }
    }
}
