//! Frames: records that were written to the disk together.
//!
//! ```text
//!   0    magic u64      8    salt u64      16   generation u64   24   sequence u64
//!   32   horizon u64    40   bytes u32     44   records u32      48   crc before u32
//!   52   crc u32        56   flushed u64   64   records ...      zeros to a multiple of 4096
//! ```
//!
//! A frame has exactly the records of transactions whose stamps are later than the previous frame's
//! horizon and not later than its own. It names the previous frame by that frame's checksum. A
//! checksum (CRC-32C) covers the records and all bytes of the header except its own four. Each life
//! of the journal has its own salt, so a frame of an earlier life is not taken for one of this
//! life. When a frame was written, all frames before the sequence `flushed` were on the disk.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::record::{self, Entry, Record};
use crate::random::random;

/// Frames begin and end at multiples of this.
pub const BLOCK: usize = 4096;
/// Bytes of a frame's header.
pub const HEADER: usize = size_of::<Header>();

const MAGIC: u64 = u64::from_le_bytes(*b"TSFRAME1");
/// Where the checksum is.
const CRC_AT: usize = core::mem::offset_of!(Header, crc);

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: U64,
    salt: U64,
    generation: U64,
    sequence: U64,
    horizon: U64,
    bytes: U32,
    records: U32,
    crc_before: U32,
    crc: U32,
    flushed: U64,
}

impl Header {
    /// The header at the start of these bytes, if they begin like a frame.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (header, _) = Self::read_from_prefix(bytes).ok()?;
        (header.magic.get() == MAGIC).then_some(header)
    }
}

/// A life of a journal: the common data of all its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// A random number.
    pub salt: u64,
    /// The number of the superblock by which it began.
    pub generation: u64,
}

impl Life {
    /// A life that begins now, with a salt of its own.
    pub fn new(generation: u64) -> Self {
        Self { salt: random(), generation }
    }
}

/// What comes next in a chain of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The number of the next frame, from 0.
    pub sequence: u64,
    /// The checksum of the frame before.
    pub crc_before: u32,
}

impl Link {
    /// Before the first frame.
    pub const FIRST: Self = Self { sequence: 0, crc_before: 0 };

    fn after(self, crc: u32) -> Self {
        Self { sequence: self.sequence + 1, crc_before: crc }
    }
}

/// A frame that is being filled.
#[derive(Default)]
pub struct Builder {
    bytes: Vec<u8>,
    records: u32,
    has_objects: bool,
    /// If it was sealed: where the padding begins.
    padding: Option<usize>,
}

impl Builder {
    /// Takes a record's entries.
    pub fn push<'e>(&mut self, stamp: u64, entries: impl Iterator<Item = Entry<'e>>) {
        self.add(|body| record::push(body, stamp, entries));
    }

    /// Takes all words of a record, and gives it this stamp. Returns the record's start, for
    /// [`push_last`](Self::push_last).
    pub fn push_words(&mut self, stamp: u64, words: impl Iterator<Item = u64>) -> usize {
        let from = self.body().len();
        self.add(|body| record::push_words(body, stamp, words));
        from
    }

    /// Appends the last record of another frame, which begins at `from` there.
    pub fn push_last(&mut self, other: &Self, from: usize) {
        self.has_objects |= other.has_objects;
        self.records += 1;
        self.body().extend_from_slice(&other.bytes[from..]);
    }

    /// Appends the first records of another frame, up to `to` there; `count` of them.
    pub fn push_first(&mut self, other: &Self, to: usize, records: u32) {
        self.has_objects |= other.has_objects;
        self.records += records;
        self.body().extend_from_slice(&other.bytes[HEADER..to]);
    }

    /// Calls `push`, which appends a record and returns whether that creates or frees objects.
    fn add(&mut self, push: impl FnOnce(&mut Vec<u8>) -> bool) {
        let has_objects = push(self.body());
        self.has_objects |= has_objects;
        self.records += 1;
    }

    /// The header and the records, without padding.
    fn body(&mut self) -> &mut Vec<u8> {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER, 0);
        }
        if let Some(padding) = self.padding.take() {
            self.bytes.truncate(padding);
        }
        &mut self.bytes
    }

    /// The records, in the order of their stamps.
    ///
    /// # Errors
    ///
    /// Says what is invalid in a record that [`push_words`](Self::push_words) has added.
    pub fn records(&self) -> Result<Vec<Record<'_>>, &'static str> {
        let end = self.padding.unwrap_or(self.bytes.len());
        records(self.bytes.get(HEADER..end).unwrap_or_default())
    }

    /// How many records it has.
    pub fn len(&self) -> u32 {
        self.records
    }

    /// Whether it has no record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether a record makes or ends an object.
    pub fn has_objects(&self) -> bool {
        self.has_objects
    }

    /// Bytes on the disk, if nothing is added.
    pub fn size(&self) -> usize {
        self.bytes.len().max(HEADER).next_multiple_of(BLOCK)
    }

    /// Forgets all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.records, self.has_objects, self.padding) = (0, false, None);
    }

    /// The frame's bytes, and the position after it. Frames before the sequence `flushed` are on
    /// the disk. If the bytes cannot be written, more records may be pushed.
    pub fn seal(&mut self, life: Life, link: Link, horizon: u64, flushed: u64) -> (&[u8], Link) {
        let length = self.body().len() - HEADER;
        let header = Header {
            magic: MAGIC.into(),
            salt: life.salt.into(),
            generation: life.generation.into(),
            sequence: link.sequence.into(),
            horizon: horizon.into(),
            bytes: u32::try_from(length).expect("a frame is smaller than a journal").into(),
            records: self.records.into(),
            crc_before: link.crc_before.into(),
            crc: 0.into(),
            flushed: flushed.into(),
        };
        self.bytes[..HEADER].copy_from_slice(header.as_bytes());
        let crc = checksum(&self.bytes);
        self.bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        self.padding = Some(self.bytes.len());
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        (&self.bytes, link.after(crc))
    }
}

/// The checksum of a header and the records after it.
fn checksum(frame: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&frame[..CRC_AT]);
    crc32c::crc32c_append(crc, &frame[CRC_AT + 4..])
}

/// The contents of a frame's first block, before the rest is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The life to which it says that it belongs.
    pub life: Life,
    /// The number that it says it has.
    pub sequence: u64,
    /// Frames before this number were on the disk when this one was written.
    pub flushed: u64,
    /// Bytes on the disk.
    pub size: usize,
}

/// The claim of these bytes, if they begin like a frame.
pub fn claim(block: &[u8]) -> Option<Claim> {
    Header::of(block).map(|header| Claim {
        life: Life { salt: header.salt.get(), generation: header.generation.get() },
        sequence: header.sequence.get(),
        flushed: header.flushed.get(),
        size: (HEADER + header.bytes.get() as usize).next_multiple_of(BLOCK),
    })
}

/// A frame that was read.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its records are those up to this stamp.
    pub horizon: u64,
    /// Its place in a chain.
    pub link: Link,
    /// What comes after it.
    pub next: Link,
    records: &'a [u8],
}

/// The frame in these bytes, if it is complete. The caller compares its life, which [`claim`]
/// returns, and its link.
pub fn read(bytes: &[u8]) -> Option<Frame<'_>> {
    let header = Header::of(bytes)?;
    let whole = bytes.get(..HEADER + header.bytes.get() as usize)?;
    let crc = checksum(whole);
    if crc != header.crc.get() {
        return None;
    }
    let link = Link { sequence: header.sequence.get(), crc_before: header.crc_before.get() };
    let (horizon, next) = (header.horizon.get(), link.after(crc));
    Some(Frame { horizon, link, next, records: &whole[HEADER..] })
}

impl<'a> Frame<'a> {
    /// The records, in the order of their stamps.
    ///
    /// # Errors
    ///
    /// What is wrong with one.
    pub fn records(&self) -> Result<Vec<Record<'a>>, &'static str> {
        records(self.records)
    }
}

fn records(mut bytes: &[u8]) -> Result<Vec<Record<'_>>, &'static str> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        records.push(record::take(&mut bytes)?);
    }
    records.sort_by_key(|record| record.stamp);
    Ok(records)
}
