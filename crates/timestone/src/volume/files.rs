//! The files: which there are, and how they are made.

use std::sync::Arc;

use zerocopy::little_endian::{U32, U128};
use zerocopy::{Immutable, IntoBytes};

use super::image::ImageWriter;
use crate::device::{Device, Storage};
use crate::error::{Error, Result};
use crate::journal::frame::{BLOCK, Life, Link};
use crate::journal::region::Region;
use crate::journal::scan::Scan;
use crate::random::random;
use crate::superblock::{self, Superblock};

/// The journal's first frame.
pub const START: u64 = BLOCK as u64;
/// The smallest journal: it has room for a frame of one block.
const JOURNAL_MIN: u64 = 2 * START;
pub const JOURNAL: &str = "journal";
pub const IMAGES: [&str; 2] = ["image.0", "image.1"];
/// A new journal is filled by writes of `ZEROS` bytes.
const ZEROS: usize = 1 << 20;
const JOURNAL_MAGIC: [u8; 16] = *b"TSJOURNAL\r\n\x1a\n\0\0\0";

/// The files of a store.
pub struct Files {
    pub store: Arc<dyn Device>,
    pub journal: Arc<dyn Device>,
    pub images: [Arc<dyn Device>; 2],
}

/// The begin of the journal's file.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct JournalHeader {
    magic: [u8; 16],
    uuid: U128,
    /// The checksum of both.
    crc: U32,
}

impl JournalHeader {
    fn new(uuid: u128) -> Self {
        let mut header = Self { magic: JOURNAL_MAGIC, uuid: uuid.into(), crc: 0.into() };
        let crc_at = core::mem::offset_of!(Self, crc);
        header.crc = crc32c::crc32c(&header.as_bytes()[..crc_at]).into();
        header
    }
}

impl Files {
    pub fn open(storage: &dyn Storage) -> Result<Self> {
        let open = |name| storage.open(name).map_err(Error::io(format!("open {name}")));
        let images = [open(IMAGES[0])?, open(IMAGES[1])?];
        Ok(Self { store: open(superblock::FILE)?, journal: open(JOURNAL)?, images })
    }

    /// Makes a new store: files and names first, and last the superblock that makes it one.
    pub fn make(&self, storage: &dyn Storage, journal_bytes: u64) -> Result<Superblock> {
        let journal_bytes = journal_bytes.max(JOURNAL_MIN);
        let uuid = u128::from(random()) << 64 | u128::from(random());
        let new = Superblock::new(uuid, journal_bytes);
        self.make_journal(new.uuid, new.journal_bytes)?;
        let image = self.begin_image(0, new.number).finish()?;
        storage.flush_names().map_err(Error::io("flush the directory"))?;
        let superblock = Superblock { image, ..new };
        superblock.write(&*self.store)?;
        Ok(superblock)
    }

    /// Fills a new journal with zeros, because overwriting blocks takes half of the time of adding
    /// them.
    pub fn make_journal(&self, uuid: u128, bytes: u64) -> Result<()> {
        let zeros = vec![0; ZEROS.min(usize::try_from(bytes).unwrap_or(ZEROS))];
        let doing = || "fill the journal with zeros";
        for offset in (0..bytes).step_by(ZEROS) {
            let length = (bytes - offset).min(ZEROS as u64) as usize;
            self.journal.write_at(offset, &zeros[..length]).map_err(Error::io(doing()))?;
        }
        let header = JournalHeader::new(uuid);
        self.journal.write_at(0, header.as_bytes()).map_err(Error::io(doing()))?;
        self.journal.flush().map_err(Error::io(doing()))
    }

    /// The journal's frames.
    pub fn journal(&self, superblock: &Superblock) -> Result<Region> {
        let frames = superblock.journal_bytes.saturating_sub(START);
        let region = Region::new(self.journal.clone(), JOURNAL, START, frames)?;
        let mut found = [0; size_of::<JournalHeader>()];
        self.journal.read_at(0, &mut found).map_err(Error::io("read journal"))?;
        if found != *JournalHeader::new(superblock.uuid).as_bytes() {
            let what = "it belongs to another store".into();
            return Err(Error::Corrupted { file: JOURNAL, offset: 0, what });
        }
        Ok(region)
    }

    /// Begins an image in one of the two files.
    pub fn begin_image(&self, file: usize, generation: u64) -> ImageWriter {
        ImageWriter::new(self.images[file].clone(), (IMAGES[file], file), generation)
    }

    /// The image that counts.
    pub fn image(&self, superblock: &Superblock) -> Result<Region> {
        let file = superblock.image.file;
        Region::new(self.images[file].clone(), IMAGES[file], 0, superblock.image.bytes)
    }

    /// The valid superblock; `None` if there is no store here.
    pub fn superblock(&self) -> Result<Option<Superblock>> {
        let found = Superblock::read(&*self.store)?;
        if found.is_none() && self.have_frames()? {
            let what = "both copies of the superblock".to_owned();
            return Err(Error::Corrupted { file: superblock::FILE, offset: 0, what });
        }
        Ok(found)
    }

    /// Whether a store was ever in use here, though it has no superblock.
    fn have_frames(&self) -> Result<bool> {
        // A store that is being made has an empty image of generation 1.
        let journal = (&self.journal, JOURNAL, START, 0);
        let [first, second] = [0, 1].map(|file| (&self.images[file], IMAGES[file], 0, 1));
        for (device, file, first, generation) in [journal, first, second] {
            let size = device.size().map_err(Error::io(format!("find the length of {file}")))?;
            let region =
                Region::new(device.clone(), file, first.min(size), size.saturating_sub(first))?;
            let life = Life { salt: 0, generation };
            if Scan::new(region, life, 0, Link::FIRST).has_later_life()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
