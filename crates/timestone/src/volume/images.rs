//! Which image counts, and the superblocks that say it.

use manycore::sync::mutation;

use super::files::Files;
use super::image::ImageWriter;
use super::journal::Journal;
use crate::error::Result;
use crate::journal::frame::Life;
use crate::superblock::{Image, Mark, Superblock};

/// The images of an open store, and its superblock.
pub struct Images {
    files: Files,
    superblock: Superblock,
}

/// The time from which on the journal has the commits that the image may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// Frames from here on have it.
    pub mark: Mark,
    /// All commits up to this are in frames before.
    pub horizon: u64,
}

impl Begin {
    /// The present end of the journal, whose frames are all on the disk: they have all commits up
    /// to
    /// `durable`.
    pub fn at(journal: &Journal, durable: u64) -> Self {
        debug_assert!(journal.is_flushed(), "frames before an image's begin are on the disk");
        Self { mark: journal.end(), horizon: durable.max(journal.horizon()) }
    }
}

impl Images {
    pub(super) fn new(files: Files, superblock: Superblock) -> Self {
        Self { files, superblock }
    }

    /// The superblock that counts.
    pub fn superblock(&self) -> Superblock {
        self.superblock
    }

    /// Begins an image, in the file that is not in use.
    pub fn begin(&self) -> ImageWriter {
        let file = 1 - self.superblock.image.file;
        self.files.begin_image(file, self.superblock.number + 1)
    }

    /// Makes an image valid, together with the journal from `begin` on. Each object in the image is
    /// as of some time from the begin on, and not later than `sharp`. `is_last`: nothing will be
    /// written afterwards.
    ///
    /// # Errors
    ///
    /// The device's errors. Then it is unknown which superblock is valid, so only frames may be
    /// written, for which both superblocks must leave room.
    pub fn publish(&mut self, image: Image, begin: Begin, sharp: u64, is_last: bool) -> Result<()> {
        let Begin { mark: start, horizon } = begin;
        self.replace(Superblock {
            image,
            start,
            horizon,
            sharp: sharp.max(horizon),
            is_clean: is_last,
            ..self.superblock
        })
    }

    /// Begins a new life of the journal, after an image with all commits up to the horizon.
    pub(super) fn begin_life(&mut self, image: Image, horizon: u64) -> Result<()> {
        // The planted mistake: frames of an earlier life are taken for those of this one.
        let is_old = mutation!("life-goes-on");
        self.replace(Superblock {
            life: if is_old { self.superblock.life } else { Life::new(self.superblock.number + 1) },
            start: Mark::FIRST,
            horizon,
            sharp: horizon,
            image,
            is_clean: false,
            ..self.superblock
        })
    }

    fn replace(&mut self, superblock: Superblock) -> Result<()> {
        let next = Superblock { number: self.superblock.number + 1, ..superblock };
        next.write(&*self.files.store)?;
        self.superblock = next;
        Ok(())
    }
}
