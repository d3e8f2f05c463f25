//! Reading a chain of frames, up to where it ends.

use manycore::sync::mutation;

use super::frame::{self, BLOCK, Claim, Frame, Life, Link};
use super::region::Region;
use crate::error::{Error, Result};

/// The buffer takes `READ` bytes at a time.
const READ: u64 = 1 << 20;

/// A chain of frames in a file.
pub struct Scan {
    region: Region,
    life: Life,
    /// The position of the next frame.
    pub position: u64,
    /// No frame ends behind this position.
    end: u64,
    /// Which frame that is to be.
    pub next: Link,
    buffer: Vec<u8>,
    /// The position of the buffer's bytes.
    buffered: u64,
}

impl Scan {
    /// Starts at this position with this frame. The chain is not longer than the region.
    pub fn new(region: Region, life: Life, position: u64, next: Link) -> Self {
        let end = position.saturating_add(region.bytes());
        Self { region, life, position, end, next, buffer: Vec::new(), buffered: 0 }
    }

    /// An error that is found at the present position.
    pub fn corrupted(&self, what: impl Into<String>) -> Error {
        self.region.corrupted(self.position, what)
    }

    /// Calls `take` with each frame, up to the first position that has no valid frame. A frame
    /// there may be torn.
    ///
    /// # Errors
    ///
    /// The device's errors, and those of `take`, which become [`Error::Corrupted`].
    pub fn frames(&mut self, mut take: impl FnMut(&Frame<'_>) -> Result<(), String>) -> Result<()> {
        while let Some(claim) = self.claim_at(self.position)? {
            if claim.life != self.life || claim.sequence != self.next.sequence {
                break;
            }
            let wanted = self.next;
            let Some(frame) = self.frame_at(self.position, claim)? else { break };
            if frame.link != wanted {
                break;
            }
            let (next, taken) = (frame.next, take(&frame));
            taken.map_err(|what| self.corrupted(what))?;
            self.next = next;
            self.position += claim.size as u64;
        }
        Ok(())
    }

    /// Reads the rest of the region. A frame there proves damage if it was written after the
    /// missing frame had been flushed, because a power cut loses only unflushed data. A frame of a
    /// later life proves it too, because only a later superblock begins such a life.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`], or those of the device.
    pub fn check_tail(&mut self) -> Result<()> {
        // The planted mistake: damage is mistaken for a frame torn by a power cut.
        if mutation!("scan-trusts-tail") {
            return Ok(());
        }
        let mut position = self.position;
        while position < self.end {
            if let Some(claim) = self.claim_at(position)? {
                let Claim { life, sequence, flushed, .. } = claim;
                let (is_later, wanted) = (self.is_later_life(life), self.next.sequence);
                let is_behind = life == self.life && sequence > wanted && flushed > wanted;
                if (is_later || is_behind) && self.frame_at(position, claim)?.is_some() {
                    let offset = self.region.offset(position);
                    return Err(self.corrupted(if is_later {
                        format!("the superblock that the frame at byte {offset} belongs to is lost")
                    } else {
                        format!(
                            "frame {wanted} is not here, and frame {sequence} is behind, at byte {offset}"
                        )
                    }));
                }
            }
            position += BLOCK as u64;
        }
        Ok(())
    }

    /// Whether the region has a frame of a later life, anywhere from the present position on.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn has_later_life(&mut self) -> Result<bool> {
        let mut position = self.position;
        while position < self.end {
            if let Some(claim) = self.claim_at(position)?
                && self.is_later_life(claim.life)
                && self.frame_at(position, claim)?.is_some()
            {
                return Ok(true);
            }
            position += BLOCK as u64;
        }
        Ok(false)
    }

    fn is_later_life(&self, life: Life) -> bool {
        life.generation > self.life.generation
    }

    /// The frame that begins here, if it is whole.
    fn frame_at(&mut self, position: u64, claim: Claim) -> Result<Option<Frame<'_>>> {
        if !self.fill(position, claim.size)? {
            return Ok(None);
        }
        let start = self.in_buffer(position);
        Ok(frame::read(&self.buffer[start..start + claim.size]))
    }

    fn claim_at(&mut self, position: u64) -> Result<Option<Claim>> {
        if !self.fill(position, BLOCK)? {
            return Ok(None);
        }
        let start = self.in_buffer(position);
        Ok(frame::claim(&self.buffer[start..]))
    }

    fn in_buffer(&self, position: u64) -> usize {
        usize::try_from(position - self.buffered).expect("the buffer has this position")
    }

    /// Reads at least `bytes` bytes into the buffer; returns whether the region has them before its
    /// end.
    fn fill(&mut self, position: u64, bytes: usize) -> Result<bool> {
        let end = position.saturating_add(bytes as u64);
        if end > self.end {
            return Ok(false);
        }
        let has = position >= self.buffered && end <= self.buffered + self.buffer.len() as u64;
        if !has {
            let length = READ.max(bytes as u64).min(self.end - position);
            self.buffer.resize(usize::try_from(length).expect("read by the megabyte"), 0);
            self.region.read(position, &mut self.buffer)?;
            self.buffered = position;
        }
        Ok(true)
    }
}
