//! Reading: an image, and the frames after it.

use super::backup::Backup;
use super::files::Files;
use super::images::{Begin, Images};
use super::journal::Journal;
use crate::device::Storage;
use crate::error::{Error, Result};
use crate::journal::frame::Link;
use crate::journal::operation::Operation;
use crate::journal::record::{Entry, Record};
use crate::journal::scan::Scan;
use crate::superblock::{Mark, Superblock};

/// Where an entry was found.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// From the image: the object exists, with these words.
    Image,
    /// In the journal.
    Journal {
        /// What the transaction has done.
        record: &'a Record<'a>,
        /// Whether the objects are in their state before the transaction. If not, they may be in a
        /// later state: an object that the transaction creates may exist already, and one that it
        /// changes or frees may not exist any more.
        is_sharp: bool,
    },
}

impl Source<'_> {
    /// Whether objects are as before the entry, or do not exist yet.
    pub fn is_sharp(&self) -> bool {
        !matches!(self, Self::Journal { is_sharp: false, .. })
    }
}

/// What files are read into.
pub trait Target {
    /// Applies a committed transaction's change of an object.
    ///
    /// # Errors
    ///
    /// Why that cannot be: the files are damaged.
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String>;

    /// Applies the changes of a committed transaction, all of which are later than the image, by
    /// running its operation. The store has this [`seed`](Recovered::seed).
    ///
    /// # Errors
    ///
    /// Why that cannot be: the files are damaged.
    fn replay(&mut self, _: &Record<'_>, _: Operation<'_>, _seed: u64) -> Result<(), String> {
        Err("an operation, and who reads has none".to_owned())
    }

    /// All was read.
    ///
    /// # Errors
    ///
    /// The reason why the data cannot be used, although the files are intact.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What was read.
pub struct Recovered {
    files: Files,
    superblock: Superblock,
    /// Where the journal's chain ends.
    end: Mark,
    /// The data has exactly the commits up to this stamp.
    pub horizon: u64,
    /// How many transactions the journal had.
    pub transactions: u64,
    /// How many of them were operations.
    pub operations: u64,
}

/// The files of a store that is open for writing.
pub struct Volume {
    /// Takes frames.
    pub journal: Journal,
    /// Takes images.
    pub images: Images,
}

impl Recovered {
    /// A number that the store keeps for its whole life.
    pub fn seed(&self) -> u64 {
        self.superblock.uuid as u64
    }

    /// Reads a store, or creates one with a journal of this length. An existing store keeps its
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
        self.superblock
    }

    /// Whether the store was closed, so that opening it recovers nothing.
    pub fn is_clean(&self) -> bool {
        self.superblock.is_clean && self.end == self.superblock.start
    }

    /// Bytes of the journal's frames.
    pub fn frame_bytes(&self) -> u64 {
        self.end.position - self.superblock.start.position
    }

    fn read_files(files: Files, superblock: Superblock, target: &mut dyn Target) -> Result<Self> {
        read_image(&files, &superblock, target)?;
        let Superblock { life, start, sharp, .. } = superblock;
        let mut scan = Scan::new(files.journal(&superblock)?, life, start.position, start.link);
        let seed = superblock.uuid as u64;
        let (mut horizon, mut transactions, mut operations) = (superblock.horizon, 0, 0);
        scan.frames(|frame| {
            for record in frame.records()? {
                if record.stamp <= horizon || record.stamp > frame.horizon {
                    return Err(format!(
                        "a transaction of time {} in a frame up to {}, after {horizon}",
                        record.stamp, frame.horizon
                    ));
                }
                let is_sharp = record.stamp > sharp;
                let source = Source::Journal { record: &record, is_sharp };
                for entry in record.entries() {
                    target.apply(source, entry?)?;
                }
                if let Some(operation) = record.operation() {
                    if !is_sharp {
                        return Err("an operation, and the image may have what it did".to_owned());
                    }
                    target.replay(&record, operation, seed)?;
                    operations += 1;
                }
                transactions += 1;
            }
            horizon = frame.horizon;
            Ok(())
        })?;
        scan.check_tail()?;
        if horizon < sharp {
            // Those frames were on the disk before the image.
            return Err(scan.corrupted(format!(
                "the journal ends at {horizon}, and the image needs it up to {sharp}"
            )));
        }
        target.finish()?;
        let end = Mark { position: scan.position, link: scan.next };
        Ok(Self { files, superblock, end, horizon, transactions, operations })
    }

    /// Prepares the files for writing, in a new life of the journal. The objects are those that
    /// were read.
    ///
    /// # Errors
    ///
    /// Those of the devices.
    pub fn start<'e>(self, objects: &mut dyn Iterator<Item = Entry<'e>>) -> Result<Volume> {
        let (is_clean, horizon) = (self.is_clean(), self.horizon);
        let region = self.files.journal(&self.superblock)?;
        let mut images = Images::new(self.files, self.superblock);
        let image = if is_clean {
            self.superblock.image
        } else {
            images.begin().write_all(horizon, objects)?
        };
        images.begin_life(image, horizon)?;
        let life = images.superblock().life;
        Ok(Volume { journal: Journal::new(region, life, Mark::FIRST, horizon), images })
    }

    /// Replaces the read objects by these, as the image of a closed store.
    ///
    /// # Errors
    ///
    /// Those of the devices.
    pub fn replace<'e>(self, objects: &mut dyn Iterator<Item = Entry<'e>>) -> Result<()> {
        let (horizon, mut images) = (self.horizon, Images::new(self.files, self.superblock));
        let image = images.begin().write_all(horizon, objects)?;
        images.begin_life(image, horizon)?;
        let begin = Begin { mark: Mark::FIRST, horizon };
        images.publish(image, begin, horizon, true)
    }

    /// Writes the objects that were read into new files, as a closed store.
    ///
    /// # Errors
    ///
    /// As of [`Images::back_up_to`].
    pub fn copy_to<'e>(
        &self,
        storage: &dyn Storage,
        objects: &mut dyn Iterator<Item = Entry<'e>>,
    ) -> Result<()> {
        let backup = Backup::begin(storage, self.superblock)?;
        let image = backup.image().write_all(self.horizon, objects)?;
        backup.finish_closed(storage, image, self.horizon)
    }
}

fn read_image(files: &Files, superblock: &Superblock, target: &mut dyn Target) -> Result<()> {
    let image = superblock.image;
    let mut scan = Scan::new(files.image(superblock)?, image.life, 0, Link::FIRST);
    scan.frames(|frame| {
        for record in frame.records()? {
            for entry in record.entries() {
                target.apply(Source::Image, entry?)?;
            }
        }
        Ok(())
    })?;
    if scan.next != image.end {
        return Err(scan.corrupted("the image does not go on here"));
    }
    Ok(())
}
