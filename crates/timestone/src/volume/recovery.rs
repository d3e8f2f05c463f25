//! Reading: an image, and the frames after it.

use super::files::{Files, IMAGES, JOURNAL, START};
use super::writer::Volume;
use crate::device::Storage;
use crate::error::{Error, Result};
use crate::journal::record::{Entry, Record};
use crate::journal::scan::Scan;
use crate::superblock::Superblock;

/// What files are read into.
pub trait Target {
    /// Takes what a committed transaction has done to an object.
    ///
    /// # Errors
    ///
    /// Why that cannot be: the files are damaged.
    fn apply(&mut self, entry: Entry<'_>) -> Result<(), String>;

    /// Likewise, of this transaction in the journal.
    ///
    /// # Errors
    ///
    /// As of [`apply`](Self::apply).
    fn apply_of(&mut self, record: &Record<'_>, entry: Entry<'_>) -> Result<(), String> {
        let _ = record;
        self.apply(entry)
    }
}

/// What was read.
pub struct Recovered {
    volume: Volume,
    /// All commits up to this stamp are there, and none later.
    pub horizon: u64,
    /// How many transactions the journal had.
    pub transactions: u64,
}

impl Recovered {
    /// A number that is the store's own for all its life.
    pub fn seed(&self) -> u64 {
        self.volume.superblock().uuid as u64
    }

    /// Reads a store, or makes one with a journal of this length. An existing one keeps its
    /// journal's length.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupted`] if files are damaged; those of the devices.
    pub fn read(
        storage: &dyn Storage,
        journal_bytes: u64,
        target: &mut dyn Target,
    ) -> Result<Self> {
        let files = Files::open(storage)?;
        let superblock = match files.superblock()? {
            Some(superblock) => superblock,
            None => files.make(storage, journal_bytes)?,
        };
        Self::read_files(files, superblock, target)
    }

    /// Reads a store that is there, and writes nothing.
    ///
    /// # Errors
    ///
    /// As of [`read`](Self::read); and if there is none.
    pub fn read_existing(storage: &dyn Storage, target: &mut dyn Target) -> Result<Self> {
        let files = Files::open(storage)?;
        let found = files.superblock()?;
        let none = || Error::io("find a superblock")(std::io::ErrorKind::NotFound.into());
        Self::read_files(files, found.ok_or_else(none)?, target)
    }

    /// The superblock by which the files were read.
    pub fn superblock(&self) -> Superblock {
        self.volume.superblock()
    }

    /// Whether the store was closed, so that opening it recovers nothing.
    pub fn is_clean(&self) -> bool {
        self.volume.is_clean()
    }

    /// Bytes of the journal's frames.
    pub fn frame_bytes(&self) -> u64 {
        self.volume.used()
    }

    fn read_files(files: Files, superblock: Superblock, target: &mut dyn Target) -> Result<Self> {
        read_image(&files, &superblock, target)?;
        files.check_journal(superblock.uuid)?;
        let mut transactions = 0;
        let mut horizon = superblock.horizon;
        let mut scan = Scan::new(&*files.journal, JOURNAL, superblock.life, START)?;
        if scan.has_later_life()? {
            return Err(scan.corrupted("the superblock that this frame belongs to is lost"));
        }
        scan.frames(|frame| {
            for record in frame.records()? {
                if record.stamp <= horizon || record.stamp > frame.horizon {
                    return Err(format!(
                        "a transaction of time {} in a frame up to {}, after {horizon}",
                        record.stamp, frame.horizon
                    ));
                }
                for entry in record.entries() {
                    target.apply_of(&record, entry?)?;
                }
                transactions += 1;
            }
            horizon = frame.horizon;
            Ok(())
        })?;
        scan.check_tail()?;
        let (offset, next) = (scan.offset, scan.next);
        let volume = Volume::new(files, superblock, offset, next);
        Ok(Self { volume, horizon, transactions })
    }

    /// Makes the files ready to be written. The objects are those that were read.
    ///
    /// # Errors
    ///
    /// Those of the devices.
    pub fn start<'e>(self, objects: &mut dyn Iterator<Item = Entry<'e>>) -> Result<Volume> {
        let mut volume = self.volume;
        if volume.is_clean() {
            volume.reuse_image()?;
        } else {
            volume.write_image(self.horizon, objects, false)?;
        }
        Ok(volume)
    }
}

fn read_image(files: &Files, superblock: &Superblock, target: &mut dyn Target) -> Result<()> {
    let image = superblock.image;
    let mut scan = Scan::new(&*files.images[image.file], IMAGES[image.file], image.life, 0)?;
    scan.frames(|frame| {
        for record in frame.records()? {
            for entry in record.entries() {
                target.apply(entry?)?;
            }
        }
        Ok(())
    })?;
    if scan.next != image.end {
        return Err(scan.corrupted("the image does not go on here"));
    }
    Ok(())
}
