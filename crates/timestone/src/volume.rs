//! The files of a store: what is written to them in which order, and how they are read again.
//!
//! | file | what is in it |
//! |---|---|
//! | `store` | the [superblock], twice |
//! | `journal` | which store it belongs to; from byte 4096 on, the frames of the present life |
//! | `image.0`, `image.1` | all objects at one moment, as frames; the superblock says which one counts |
//!
//! # Order of writes
//!
//! *A commit* is a frame, written behind the last one and flushed. The next frame is written after
//! that flush has returned: so at most one frame can be torn, and it is the last one, which nobody
//! was told of.
//!
//! *A new image* goes to the file that does not count, and is flushed; then a superblock says that
//! it counts, and begins a new life of the journal; only then is the journal written from its begin
//! again. Between any two calls either the old superblock counts, whose image and frames are all
//! there, or the new one.
//!
//! *Opening* never goes on behind the last frame: what was read may come from the page cache, and
//! may never have got to the disk. It writes a new image first, unless the store was closed and the
//! journal is empty.
//!
//! *A write that fails* has written a part of a frame, which the next attempt overwrites: its
//! records wait. *A flush that fails* leaves it unknown what the disk has, and so does a superblock
//! that could not be written. The volume then writes nothing any more ([`Error::Poisoned`]).

use std::sync::Arc;

use crate::device::{Device, Storage};
use crate::error::{Error, Result};
use crate::journal::frame::{BLOCK, Builder, Life, Link};
use crate::journal::record::{ALLOCATED, Entry, FREED, Record};
use crate::journal::scan::Scan;
use crate::superblock::{self, Image, Superblock};

/// The journal's first frame.
const START: u64 = BLOCK as u64;
/// The least that a journal has room for: a frame of one block.
const JOURNAL_MIN: u64 = 2 * START;
const JOURNAL: &str = "journal";
const IMAGES: [&str; 2] = ["image.0", "image.1"];
/// An image's frames have about so many bytes.
const IMAGE_FRAME: usize = 256 << 10;
/// So much is written at a time when the journal is made.
const ZEROS: usize = 1 << 20;
/// The begin of the journal's file; the uuid follows, and a checksum of both.
const JOURNAL_MAGIC: [u8; 16] = *b"TSJOURNAL\r\n\x1a\n\0\0\0";

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

struct Files {
    store: Arc<dyn Device>,
    journal: Arc<dyn Device>,
    images: [Arc<dyn Device>; 2],
}

/// What was read.
pub struct Recovered {
    volume: Volume,
    /// All commits up to this stamp are there, and none later.
    pub horizon: u64,
    /// How many transactions the journal had.
    pub transactions: u64,
    is_clean: bool,
}

impl Files {
    fn open(storage: &dyn Storage) -> Result<Self> {
        let open = |name| storage.open(name).map_err(Error::io(format!("open {name}")));
        let images = [open(IMAGES[0])?, open(IMAGES[1])?];
        Ok(Self { store: open(superblock::FILE)?, journal: open(JOURNAL)?, images })
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
        self.journal.write_at(0, &journal_header(uuid)).map_err(Error::io(doing()))?;
        self.journal.flush().map_err(Error::io(doing()))
    }

    fn check_journal(&self, uuid: u128) -> Result<()> {
        let wrong = |what: &str| Error::Corrupted { file: JOURNAL, offset: 0, what: what.into() };
        let mut found = [0; 36];
        let size = self.journal.size().map_err(Error::io("find the length of journal"))?;
        if size < JOURNAL_MIN {
            return Err(wrong("it is cut off"));
        }
        self.journal.read_at(0, &mut found).map_err(Error::io("read journal"))?;
        (found == journal_header(uuid))
            .then_some(())
            .ok_or_else(|| wrong("it belongs to another store"))
    }

    /// The superblock that counts; none if no store was made here.
    fn superblock(&self) -> Result<Option<Superblock>> {
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
    fn write_image<'e>(
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

fn journal_header(uuid: u128) -> [u8; 36] {
    let mut header = [0; 36];
    header[..16].copy_from_slice(&JOURNAL_MAGIC);
    header[16..32].copy_from_slice(&uuid.to_le_bytes());
    let crc = crc32c::crc32c(&header[..32]);
    header[32..].copy_from_slice(&crc.to_le_bytes());
    header
}

impl Recovered {
    /// A number that is the store's own for all its life.
    pub fn seed(&self) -> u64 {
        self.volume.superblock.uuid as u64
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
            None => make(storage, &files, journal_bytes)?,
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
        self.volume.superblock
    }

    /// Bytes of the journal's frames.
    pub fn frame_bytes(&self) -> u64 {
        self.volume.offset - START
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
        let is_clean = superblock.is_clean && next == Link::FIRST;
        let volume = Volume { files, superblock, offset, next, poison: None };
        Ok(Self { volume, horizon, transactions, is_clean })
    }

    /// Makes the files ready to be written. The objects are those that were read.
    ///
    /// # Errors
    ///
    /// Those of the devices.
    pub fn start<'e>(self, objects: &mut dyn Iterator<Item = Entry<'e>>) -> Result<Volume> {
        let mut volume = self.volume;
        if self.is_clean {
            let image = volume.superblock.image;
            volume.begin_life(
                Superblock { horizon: self.horizon, image, ..volume.superblock },
                false,
            )?;
        } else {
            volume.write_image(self.horizon, objects, false)?;
        }
        Ok(volume)
    }
}

/// A new store: files and names first, and last the superblock that makes it one.
fn make(storage: &dyn Storage, files: &Files, journal_bytes: u64) -> Result<Superblock> {
    let journal_bytes = journal_bytes.max(JOURNAL_MIN).next_multiple_of(START);
    let uuid = fastrand::u128(..);
    let life = Life { salt: fastrand::u64(..), generation: 1 };
    files.make_journal(uuid, journal_bytes)?;
    let image = files.write_image(0, life, 0, &mut core::iter::empty())?;
    storage.flush_names().map_err(Error::io("flush the directory"))?;
    let superblock = Superblock { uuid, life, horizon: 0, image, journal_bytes, is_clean: true };
    superblock.write(&*files.store)?;
    Ok(superblock)
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

impl Volume {
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
        let generation = self.superblock.life.generation + 1;
        let life = Life { salt: fastrand::u64(..), generation };
        let image = self.files.write_image(file, life, horizon, objects)?;
        self.begin_life(Superblock { horizon, image, ..self.superblock }, is_last)
    }

    /// Lets the superblock count, with a new life of the journal.
    fn begin_life(&mut self, superblock: Superblock, is_clean: bool) -> Result<()> {
        let generation = self.superblock.life.generation + 1;
        let life = Life { salt: fastrand::u64(..), generation };
        let superblock = Superblock { life, is_clean, ..superblock };
        superblock.write(&*self.files.store).inspect_err(|cause| {
            self.poison = Some(cause.to_string());
        })?;
        self.superblock = superblock;
        (self.offset, self.next) = (START, Link::FIRST);
        Ok(())
    }
}

impl Entry<'_> {
    /// An object that is there, with all of its words.
    pub fn whole(place: u64, words: &[u8]) -> Entry<'_> {
        let size = u16::try_from(words.len() / 8).expect("an object has few words");
        Entry { place, size, first: 0, words, flags: ALLOCATED }
    }

    /// Whether the object is new.
    pub fn is_new(&self) -> bool {
        self.flags & ALLOCATED != 0
    }

    /// Whether the object ends.
    pub fn is_end(&self) -> bool {
        self.flags & FREED != 0
    }
}
