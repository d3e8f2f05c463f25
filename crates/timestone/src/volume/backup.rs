//! A copy of a store that is open, in other files.
//!
//! A backup is an image and the frames from its begin to its end, as after a crash at that end. So
//! opening the copy is recovery.

use super::files::{Files, START};
use super::image::ImageWriter;
use super::images::{Begin, Images};
use crate::device::Storage;
use crate::error::{Error, Result};
use crate::journal::frame::Life;
use crate::journal::region::Region;
use crate::superblock::{Image, Mark, Superblock};

/// The journal is copied by pieces of this length.
const PIECE: usize = 1 << 20;

/// A copy that is being written.
pub struct Backup {
    files: Files,
    superblock: Superblock,
}

impl Images {
    /// Begins a copy in files that do not exist yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if there is a store already; the devices' errors.
    pub fn back_up_to(&self, storage: &dyn Storage) -> Result<Backup> {
        Backup::begin(storage, self.superblock())
    }
}

impl Backup {
    /// Begins a copy of a store in memory, in files that do not exist yet.
    ///
    /// # Errors
    ///
    /// As of [`Images::back_up_to`].
    pub fn of_memory(storage: &dyn Storage, uuid: u128, journal_bytes: u64) -> Result<Self> {
        Self::begin(storage, Superblock::new(uuid, journal_bytes))
    }

    pub(super) fn begin(storage: &dyn Storage, superblock: Superblock) -> Result<Self> {
        let files = Files::open(storage)?;
        if files.superblock()?.is_some() {
            let exists = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::io("make a backup where a store is")(exists));
        }
        Ok(Self { files, superblock })
    }

    /// The copy's image.
    pub fn image(&self) -> ImageWriter {
        self.files.begin_image(0, self.superblock.number)
    }

    /// Copies the journal from the image's begin to its end; no object in the image was read after
    /// that. Then makes the copy a store.
    ///
    /// # Errors
    ///
    /// Those of the devices. Then there is no store.
    pub fn finish(
        self,
        storage: &dyn Storage,
        (image, begin): (Image, Begin),
        (journal, end): (&Region, Mark),
        sharp: u64,
    ) -> Result<()> {
        let Superblock { uuid, journal_bytes, .. } = self.superblock;
        self.files.make_journal(uuid, journal_bytes)?;
        let copy = Region::new(self.files.journal.clone(), "journal", START, journal.bytes())?;
        let mut piece = Vec::new();
        for position in (begin.mark.position..end.position).step_by(PIECE) {
            let length = (end.position - position).min(PIECE as u64);
            piece.resize(usize::try_from(length).expect("a piece is short"), 0);
            journal.read(position, &mut piece)?;
            copy.write(position - begin.mark.position, &piece)?;
        }
        copy.flush()?;
        let start = Mark { position: 0, ..begin.mark };
        let (horizon, sharp) = (begin.horizon, sharp.max(begin.horizon));
        self.publish(storage, Superblock { start, horizon, sharp, image, ..self.superblock })
    }

    /// Makes the copy a closed store. Its image has all commits up to the horizon, and no later
    /// one.
    ///
    /// # Errors
    ///
    /// As of [`finish`](Self::finish).
    pub fn finish_closed(self, storage: &dyn Storage, image: Image, horizon: u64) -> Result<()> {
        let Superblock { uuid, journal_bytes, number, .. } = self.superblock;
        self.files.make_journal(uuid, journal_bytes)?;
        let (life, start, sharp) = (Life::new(number), Mark::FIRST, horizon);
        let superblock = Superblock { life, start, horizon, sharp, image, ..self.superblock };
        self.publish(storage, superblock)
    }

    fn publish(&self, storage: &dyn Storage, superblock: Superblock) -> Result<()> {
        storage.flush_names().map_err(Error::io("flush the directory"))?;
        superblock.write(&*self.files.store)
    }
}
