//! The superblock: which image, and the journal from where on, make up the store.
//!
//! The file `store` has two copies of the superblock, of one sector each, 4096 bytes apart. A
//! change writes and flushes the first copy, then the second. So after a crash at least one copy is
//! intact, and the newer one counts. At other times they are equal, so damage to one is harmless.
//!
//! ```text
//!   0    magic 16 bytes       16   major u16      18   minor u16     20   flags u32
//!   24   uuid u128
//!   40   number u64           48   salt u64       56   horizon u64
//!   64   image salt u64       72   image generation u64              80   image frames u64
//!   88   image bytes u64      96   image crc u32  100  image file u32
//!   104  journal bytes u64    112  sharp u64      120  journal generation u64
//!   128  position u64         136  sequence u64   144  crc before u32
//!   148  reserved             508  crc u32
//! ```

use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::device::{Device, SECTOR};
use crate::error::{Error, Result};
use crate::journal::frame::{Life, Link};

/// The name of the file.
pub const FILE: &str = "store";
/// The version of the format. A reader refuses another major version.
pub const MAJOR: u16 = 2;

const MAGIC: [u8; 16] = *b"TIMESTON\r\n\x1a\n\0\0\0\0";
const COPIES_AT: [u64; 2] = [0, 4096];
/// The journal has no frame.
const CLEAN: u32 = 1;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Layout {
    magic: [u8; 16],
    major: U16,
    minor: U16,
    flags: U32,
    uuid: U128,
    number: U64,
    salt: U64,
    horizon: U64,
    image_salt: U64,
    image_generation: U64,
    image_frames: U64,
    image_bytes: U64,
    image_crc: U32,
    image_file: U32,
    journal_bytes: U64,
    sharp: U64,
    generation: U64,
    position: U64,
    sequence: U64,
    crc_before: U32,
    reserved: [u8; SECTOR - 152],
    crc: U32,
}

const _: () = assert!(size_of::<Layout>() == SECTOR);

/// An image: all objects as a chain of frames in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Which of the two files.
    pub file: usize,
    /// What its frames have in common.
    pub life: Life,
    /// The end of its chain.
    pub end: Link,
    /// Its length.
    pub bytes: u64,
}

/// A place between two frames of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The number of bytes of all earlier frames since the journal's life began.
    pub position: u64,
    /// What comes after them.
    pub link: Link,
}

impl Mark {
    /// Before the first frame of a life.
    pub const FIRST: Self = Self { position: 0, link: Link::FIRST };
}

/// The root of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Which store.
    pub uuid: u128,
    /// How many superblocks there were before.
    pub number: u64,
    /// The life of the journal; its generation is the number of the superblock by which it began.
    pub life: Life,
    /// Where the frames begin that recovery needs.
    pub start: Mark,
    /// The journal has the commits with stamps after this; all others are in the image.
    pub horizon: u64,
    /// The image has no commit with a later stamp than this. Each of its objects is as of some time
    /// between the two stamps.
    pub sharp: u64,
    /// The image.
    pub image: Image,
    /// The length of the journal.
    pub journal_bytes: u64,
    /// Whether the store was closed, and nothing has been written since.
    pub is_clean: bool,
}

impl Superblock {
    /// The superblock of a new store. The store is empty, and the image has no frame.
    pub fn new(uuid: u128, journal_bytes: u64) -> Self {
        let (life, end) = (Life::new(1), Link::FIRST);
        Self {
            uuid,
            number: life.generation,
            life,
            start: Mark::FIRST,
            horizon: 0,
            sharp: 0,
            image: Image { file: 0, life, end, bytes: 0 },
            journal_bytes: journal_bytes.next_multiple_of(4096),
            is_clean: true,
        }
    }
}

impl Superblock {
    fn to_layout(self) -> Layout {
        let mut layout = Layout {
            magic: MAGIC,
            major: MAJOR.into(),
            minor: 0.into(),
            flags: if self.is_clean { CLEAN } else { 0 }.into(),
            uuid: self.uuid.into(),
            number: self.number.into(),
            salt: self.life.salt.into(),
            horizon: self.horizon.into(),
            image_salt: self.image.life.salt.into(),
            image_generation: self.image.life.generation.into(),
            image_frames: self.image.end.sequence.into(),
            image_bytes: self.image.bytes.into(),
            image_crc: self.image.end.crc_before.into(),
            image_file: u32::from(self.image.file == 1).into(),
            journal_bytes: self.journal_bytes.into(),
            sharp: self.sharp.into(),
            generation: self.life.generation.into(),
            position: self.start.position.into(),
            sequence: self.start.link.sequence.into(),
            crc_before: self.start.link.crc_before.into(),
            reserved: [0; _],
            crc: 0.into(),
        };
        layout.crc = crc32c::crc32c(&layout.as_bytes()[..SECTOR - 4]).into();
        layout
    }

    /// Writes both copies, one after the other.
    ///
    /// # Errors
    ///
    /// The device's errors. Then it is unknown which superblock is valid.
    pub fn write(self, device: &dyn Device) -> Result<()> {
        let layout = self.to_layout();
        for offset in COPIES_AT {
            let doing = || format!("write the superblock at byte {offset} of {FILE}");
            device.write_at(offset, layout.as_bytes()).map_err(Error::io(doing()))?;
            device.flush().map_err(Error::io(doing()))?;
        }
        Ok(())
    }

    /// The newer one of the undamaged copies; `None` if both are damaged.
    ///
    /// # Errors
    ///
    /// The device's errors; [`Error::Version`] if the store has another format.
    pub fn read(device: &dyn Device) -> Result<Option<Self>> {
        let mut newest: Option<Self> = None;
        let size = device.size().map_err(Error::io(format!("find the length of {FILE}")))?;
        for offset in COPIES_AT {
            let mut sector = [0; SECTOR];
            if size < offset + SECTOR as u64 {
                continue;
            }
            device.read_at(offset, &mut sector).map_err(Error::io(format!("read {FILE}")))?;
            let found = Self::parse(&sector)?;
            let number = |superblock: Option<Self>| superblock.map(|s| s.number);
            if number(found) > number(newest) {
                newest = found;
            }
        }
        Ok(newest)
    }

    fn parse(sector: &[u8; SECTOR]) -> Result<Option<Self>> {
        let layout: Layout = zerocopy::transmute!(*sector);
        if layout.magic != MAGIC || layout.crc.get() != crc32c::crc32c(&sector[..SECTOR - 4]) {
            return Ok(None);
        }
        if layout.major.get() != MAJOR {
            return Err(Error::Version { found: layout.major.get(), wanted: MAJOR });
        }
        let life = Life { salt: layout.salt.get(), generation: layout.generation.get() };
        let image_life =
            Life { salt: layout.image_salt.get(), generation: layout.image_generation.get() };
        let image = Image {
            file: usize::from(layout.image_file.get() == 1),
            life: image_life,
            end: Link { sequence: layout.image_frames.get(), crc_before: layout.image_crc.get() },
            bytes: layout.image_bytes.get(),
        };
        let link = Link { sequence: layout.sequence.get(), crc_before: layout.crc_before.get() };
        Ok(Some(Self {
            uuid: layout.uuid.get(),
            number: layout.number.get(),
            life,
            start: Mark { position: layout.position.get(), link },
            horizon: layout.horizon.get(),
            sharp: layout.sharp.get(),
            image,
            journal_bytes: layout.journal_bytes.get(),
            is_clean: layout.flags.get() & CLEAN != 0,
        }))
    }
}
