//! Writing: frames of the journal, and images.

use super::files::{Files, START};
use crate::error::{Error, Result};
use crate::journal::frame::{Builder, Life, Link};
use crate::journal::record::Entry;
use crate::superblock::Superblock;

/// The files of a store that is open.
pub struct Volume {
    files: Files,
    superblock: Superblock,
    /// Where the next frame goes.
    offset: u64,
    next: Link,
    /// The first failure whose outcome is not known.
    poison: Option<String>,
}

impl Volume {
    /// After the frames that were read: the next one comes at this place.
    pub(super) fn new(files: Files, superblock: Superblock, offset: u64, next: Link) -> Self {
        Self { files, superblock, offset, next, poison: None }
    }

    /// The superblock that counts.
    pub fn superblock(&self) -> Superblock {
        self.superblock
    }

    /// Whether the store was closed, and nothing was written since.
    pub(super) fn is_clean(&self) -> bool {
        self.superblock.is_clean && self.next == Link::FIRST
    }

    /// Begins a new life of the journal, with the image that there is.
    pub(super) fn reuse_image(&mut self) -> Result<()> {
        self.begin_life(self.superblock, false)
    }

    /// Bytes of the journal's frames.
    pub fn used(&self) -> u64 {
        self.offset - START
    }

    /// Bytes of the journal that are left.
    pub fn room(&self) -> u64 {
        self.superblock.journal_bytes - self.offset
    }

    /// Bytes of the journal for frames.
    pub fn capacity(&self) -> u64 {
        self.superblock.journal_bytes - START
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

    /// Writes a frame with all transactions up to this horizon that are in no frame yet, and
    /// returns when it is on the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if the journal has no room: write an image. Those of the device; if the
    /// flush fails, it is poisoned ([`Error::Poisoned`]), else the frame may be written again, with
    /// more records in it.
    pub fn append(&mut self, frame: &mut Builder, horizon: u64) -> Result<()> {
        self.check()?;
        if frame.size() as u64 > self.room() {
            let (size, room) = (frame.size(), self.room());
            return Err(Error::Full(format!(
                "a frame of {size} bytes, the journal has {room} left"
            )));
        }
        let (bytes, next) = frame.seal(self.superblock.life, self.next, horizon);
        let journal = &self.files.journal;
        let doing = format!("write the journal at byte {}", self.offset);
        journal.write_at(self.offset, bytes).map_err(Error::io(doing.as_str()))?;
        if let Err(cause) = journal.flush() {
            self.poison = Some(format!("{doing}: {cause}"));
            return Err(Error::Io { doing, cause });
        }
        self.offset += bytes.len() as u64;
        self.next = next;
        Ok(())
    }

    /// Writes all objects as they are at this horizon, up to which all commits are in the journal,
    /// and empties the journal. `is_last` says that nothing is going to be written afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] or another of the device while the image is written: the journal goes on as
    /// it was. If the superblock cannot be written, the volume is poisoned.
    pub fn write_image<'e>(
        &mut self,
        horizon: u64,
        objects: &mut dyn Iterator<Item = Entry<'e>>,
        is_last: bool,
    ) -> Result<()> {
        self.check()?;
        let file = 1 - self.superblock.image.file;
        let image = self.files.write_image(file, self.next_life(), horizon, objects)?;
        self.begin_life(Superblock { horizon, image, ..self.superblock }, is_last)
    }

    /// Lets the superblock count, with a new life of the journal.
    fn begin_life(&mut self, superblock: Superblock, is_clean: bool) -> Result<()> {
        let superblock = Superblock { life: self.next_life(), is_clean, ..superblock };
        superblock.write(&*self.files.store).inspect_err(|cause| {
            self.poison = Some(cause.to_string());
        })?;
        self.superblock = superblock;
        (self.offset, self.next) = (START, Link::FIRST);
        Ok(())
    }

    /// One of the next superblock: its image's and its journal's have different salts.
    fn next_life(&self) -> Life {
        Life::new(self.superblock.life.generation + 1)
    }
}
