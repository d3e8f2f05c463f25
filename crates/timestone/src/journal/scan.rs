//! Reading a chain of frames, up to where it ends.

use super::frame::{self, BLOCK, Claim, Frame, Life, Link};
use crate::device::Device;
use crate::error::{Error, Result};

/// The buffer takes `READ` bytes at a time.
const READ: usize = 1 << 20;

/// A chain of frames in a file.
pub struct Scan<'a> {
    device: &'a dyn Device,
    file: &'static str,
    life: Life,
    /// Where the next frame is to be.
    pub offset: u64,
    /// Where the file ends.
    end: u64,
    /// Which frame that is to be.
    pub next: Link,
    buffer: Vec<u8>,
    /// Where the buffer's bytes are.
    buffered: u64,
}

impl<'a> Scan<'a> {
    /// Begins at this place, with the first frame.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn new(
        device: &'a dyn Device,
        file: &'static str,
        life: Life,
        offset: u64,
    ) -> Result<Self> {
        let end = device.size().map_err(Error::io(format!("find the length of {file}")))?;
        let next = Link::FIRST;
        Ok(Self { device, file, life, offset, end, next, buffer: Vec::new(), buffered: 0 })
    }

    /// An error that is found at the present place.
    pub fn corrupted(&self, what: impl Into<String>) -> Error {
        Error::Corrupted { file: self.file, offset: self.offset, what: what.into() }
    }

    /// Calls `take` with each frame up to the first place where the next one is not. That frame may
    /// be torn.
    ///
    /// # Errors
    ///
    /// Those of the device, and of `take`, whose reason becomes [`Error::Corrupted`].
    pub fn frames(&mut self, mut take: impl FnMut(&Frame<'_>) -> Result<(), String>) -> Result<()> {
        while let Some(claim) = self.claim_at(self.offset)? {
            if claim.life != self.life || claim.sequence != self.next.sequence {
                break;
            }
            let wanted = self.next;
            let Some(frame) = self.frame_at(self.offset, claim)? else { break };
            if frame.link != wanted {
                break;
            }
            let (next, taken) = (frame.next, take(&frame));
            taken.map_err(|what| self.corrupted(what))?;
            self.next = next;
            self.offset += claim.size as u64;
        }
        Ok(())
    }

    /// Looks behind the end of the chain. One frame is written at a time, so that behind a torn one
    /// there is none of this life: if there is, what ended the chain is damage.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`], or those of the device.
    pub fn check_tail(&mut self) -> Result<()> {
        let mut offset = self.offset;
        while offset < self.end {
            if let Some(claim) = self.claim_at(offset)?
                && claim.life == self.life
                && claim.sequence > self.next.sequence
                && self.frame_at(offset, claim)?.is_some()
            {
                let (found, wanted) = (claim.sequence, self.next.sequence);
                return Err(self.corrupted(format!(
                    "frame {wanted} is not here, and frame {found} is behind, at byte {offset}"
                )));
            }
            offset += BLOCK as u64;
        }
        Ok(())
    }

    /// Whether a frame of a later life begins the file, which the superblock then does not know.
    ///
    /// # Errors
    ///
    /// Those of the device.
    pub fn has_later_life(&mut self) -> Result<bool> {
        let Some(claim) = self.claim_at(self.offset)? else { return Ok(false) };
        Ok(claim.life.generation > self.life.generation
            && self.frame_at(self.offset, claim)?.is_some())
    }

    /// The frame that begins here, if it is whole.
    fn frame_at(&mut self, offset: u64, claim: Claim) -> Result<Option<Frame<'_>>> {
        if !self.fill(offset, claim.size)? {
            return Ok(None);
        }
        let start = self.position(offset);
        Ok(frame::read(&self.buffer[start..start + claim.size]))
    }

    fn claim_at(&mut self, offset: u64) -> Result<Option<Claim>> {
        if !self.fill(offset, BLOCK)? {
            return Ok(None);
        }
        let start = self.position(offset);
        Ok(frame::claim(&self.buffer[start..]))
    }

    fn position(&self, offset: u64) -> usize {
        usize::try_from(offset - self.buffered).expect("the buffer has this place")
    }

    /// Reads at least `bytes` bytes into the buffer; whether the file has them.
    fn fill(&mut self, offset: u64, bytes: usize) -> Result<bool> {
        let end = offset + bytes as u64;
        if end > self.end {
            return Ok(false);
        }
        let has = offset >= self.buffered && end <= self.buffered + self.buffer.len() as u64;
        if !has {
            let length = (bytes.max(READ) as u64).min(self.end - offset);
            self.buffer.resize(usize::try_from(length).expect("read by the megabyte"), 0);
            let doing = format!("read {} at byte {offset}", self.file);
            self.device.read_at(offset, &mut self.buffer).map_err(Error::io(doing))?;
            self.buffered = offset;
        }
        Ok(true)
    }
}
