//! Writing frames of the journal.

use manycore::sync::mutation;

use super::files::JOURNAL;
use crate::error::{Error, Result};
use crate::journal::frame::{Builder, Life};
use crate::journal::region::Region;
use crate::superblock::Mark;

/// The journal of a store that is open.
pub struct Journal {
    /// The region of the frames, and their common data. `None` if frames are not kept.
    place: Option<(Region, Life)>,
    /// Frames before this one are not needed any more, and may be overwritten.
    start: Mark,
    /// Where the next frame goes.
    end: Mark,
    /// All commits up to this are in a frame on the disk or in the image.
    horizon: u64,
    /// All commits up to this are in a frame or in the image.
    written: u64,
    /// The sequence of the first frame that may not be on the disk.
    flushed: u64,
    /// The first failure whose outcome is not known.
    poison: Option<String>,
}

impl Journal {
    /// Creates an empty journal. All commits up to the horizon are in the image.
    pub(super) fn new(region: Region, life: Life, start: Mark, horizon: u64) -> Self {
        Self { place: Some((region, life)), ..Self::at(start, horizon) }
    }

    /// The journal of a store in memory: it accepts frames and keeps none.
    pub fn nowhere() -> Self {
        Self::at(Mark::FIRST, 0)
    }

    fn at(start: Mark, horizon: u64) -> Self {
        let (written, flushed) = (horizon, start.link.sequence);
        Self { place: None, start, end: start, horizon, written, flushed, poison: None }
    }

    /// Where the frames are.
    pub fn region(&self) -> Option<&Region> {
        self.place.as_ref().map(|(region, _)| region)
    }

    /// Where the next frame goes.
    pub fn end(&self) -> Mark {
        self.end
    }

    /// The horizon of the last frame on the disk, or the journal's initial horizon.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Bytes of the frames that are needed.
    pub fn used(&self) -> u64 {
        self.end.position - self.start.position
    }

    /// Bytes for more frames.
    pub fn room(&self) -> u64 {
        self.capacity() - self.used()
    }

    /// Bytes for frames.
    pub fn capacity(&self) -> u64 {
        self.region().map_or(u64::MAX, Region::bytes)
    }

    /// Fails if an earlier write has failed whose outcome is not known.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`].
    pub fn check(&self) -> Result<()> {
        match &self.poison {
            Some(cause) => Err(Error::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Nothing is written any more, for this reason.
    pub fn poison(&mut self, cause: &Error) {
        self.poison.get_or_insert_with(|| cause.to_string());
    }

    /// Whether all frames are on the disk.
    pub fn is_flushed(&self) -> bool {
        self.flushed == self.end.link.sequence
    }

    /// Writes a frame with all transactions up to this horizon that are in no frame yet. When this
    /// returns, the operating system has the frame; after [`flush`](Self::flush), the disk has it.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the journal has no room: write an image. [`Error::Poisoned`]. Also the
    /// device's errors: then the frame may be written again, with more records in it.
    pub fn write(&mut self, frame: &mut Builder, horizon: u64) -> Result<()> {
        self.check()?;
        if frame.size() as u64 > self.room() {
            let (size, room) = (frame.size(), self.room());
            return Err(Error::Full(format!(
                "a frame of {size} bytes, the {JOURNAL} has {room} left"
            )));
        }
        let Some((region, life)) = &self.place else { return Ok(()) };
        // The planted mistake: frames that the power cut has torn seem to have been on the disk.
        let is_early = mutation!("frame-claims-flushed");
        let flushed = if is_early { self.end.link.sequence } else { self.flushed };
        let (bytes, link) = frame.seal(*life, self.end.link, horizon, flushed);
        region.write(self.end.position, bytes)?;
        self.end = Mark { position: self.end.position + bytes.len() as u64, link };
        self.written = horizon;
        Ok(())
    }

    /// Returns when all frames are on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`]; and the device's error, after which the journal is poisoned.
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if let Some((region, _)) = &self.place
            && self.flushed != self.end.link.sequence
        {
            let flushed = region.flush();
            // The planted mistake: the next flush counts data as written that the disk has lost.
            if !mutation!("flush-forgives") {
                flushed.as_ref().err().inspect(|cause| self.poison = Some(cause.to_string()));
            }
            flushed?;
            (self.horizon, self.flushed) = (self.written, self.end.link.sequence);
        }
        Ok(())
    }

    /// Allows to overwrite frames before the mark, which no superblock on the disk needs any more.
    pub fn release(&mut self, start: Mark) {
        debug_assert!((self.start.position..=self.end.position).contains(&start.position));
        self.start = start;
    }
}
