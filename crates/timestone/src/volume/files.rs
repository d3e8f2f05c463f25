//! The files: which there are, how they are made, and how an image is written.

use std::sync::Arc;

use zerocopy::little_endian::{U32, U128};
use zerocopy::{Immutable, IntoBytes};

use crate::device::{Device, Storage};
use crate::error::{Error, Result};
use crate::journal::frame::{BLOCK, Builder, Life, Link};
use crate::journal::record::Entry;
use crate::journal::scan::Scan;
use crate::superblock::{self, Image, Superblock};

/// The journal's first frame.
pub const START: u64 = BLOCK as u64;
/// The least that a journal has room for: a frame of one block.
const JOURNAL_MIN: u64 = 2 * START;
pub const JOURNAL: &str = "journal";
pub const IMAGES: [&str; 2] = ["image.0", "image.1"];
/// A frame of an image is written when it has at least `IMAGE_FRAME` bytes.
const IMAGE_FRAME: usize = 256 << 10;
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
    /// Of both.
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
        let journal_bytes = journal_bytes.max(JOURNAL_MIN).next_multiple_of(START);
        let (uuid, life) = (fastrand::u128(..), Life::new(1));
        self.make_journal(uuid, journal_bytes)?;
        let image = self.write_image(0, life, 0, &mut core::iter::empty())?;
        storage.flush_names().map_err(Error::io("flush the directory"))?;
        let superblock =
            Superblock { uuid, life, horizon: 0, image, journal_bytes, is_clean: true };
        superblock.write(&*self.store)?;
        Ok(superblock)
    }

    /// Fills a new journal with zeros: to overwrite blocks takes half of the time that it takes to
    /// add them.
    fn make_journal(&self, uuid: u128, bytes: u64) -> Result<()> {
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

    pub fn check_journal(&self, uuid: u128) -> Result<()> {
        let wrong = |what: &str| Error::Corrupted { file: JOURNAL, offset: 0, what: what.into() };
        let mut found = [0; size_of::<JournalHeader>()];
        let size = self.journal.size().map_err(Error::io("find the length of journal"))?;
        if size < JOURNAL_MIN {
            return Err(wrong("it is cut off"));
        }
        self.journal.read_at(0, &mut found).map_err(Error::io("read journal"))?;
        (found == *JournalHeader::new(uuid).as_bytes())
            .then_some(())
            .ok_or_else(|| wrong("it belongs to another store"))
    }

    /// The superblock that counts; none if no store was made here.
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
        let life = Life { salt: 0, generation: 0 };
        if Scan::new(&*self.journal, JOURNAL, life, START)?.has_later_life()? {
            return Ok(true);
        }
        // A store that is being made has an empty image of generation 1.
        let life = Life { salt: 0, generation: 1 };
        for (device, file) in self.images.iter().zip(IMAGES) {
            if Scan::new(&**device, file, life, 0)?.has_later_life()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes an image into the file that does not count, and flushes it.
    pub fn write_image<'e>(
        &self,
        file: usize,
        life: Life,
        horizon: u64,
        objects: &mut dyn Iterator<Item = Entry<'e>>,
    ) -> Result<Image> {
        let (device, mut offset, mut link) = (&self.images[file], 0, Link::FIRST);
        let doing = || format!("write {}", IMAGES[file]);
        let mut builder = Builder::default();
        let mut objects = objects.peekable();
        loop {
            builder.clear();
            while builder.size() < IMAGE_FRAME
                && let Some(object) = objects.next()
            {
                builder.push(horizon, core::iter::once(object));
            }
            let (bytes, next) = builder.seal(life, link, horizon);
            device.write_at(offset, bytes).map_err(Error::io(doing()))?;
            offset += bytes.len() as u64;
            link = next;
            if objects.peek().is_none() {
                break;
            }
        }
        device.flush().map_err(Error::io(doing()))?;
        Ok(Image { file, life, end: link, bytes: offset })
    }
}
