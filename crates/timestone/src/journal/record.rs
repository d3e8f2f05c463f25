//! Records: what one transaction has written, as bytes.
//!
//! ```text
//!   record   | length u32 | kind u8 | flags u8 | 0 u16 | stamp u64 | entries ...
//!   entry    | place u64 | size u16 | first u16 | words u16 | flags u16 | words x u64 |
//! ```
//!
//! An entry has the new value of some words of an object: `words` of them, from word `first` on.
//! All numbers are little endian. A record's header has its length, and entries fill the record.
//! Records of another kind name an [operation](super::operation) that has run.

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::operation::Operation;

/// A kind of record: the values of words after the transaction.
pub const VALUES: u8 = 1;
/// A kind of record: which operation has run.
pub const OPERATION: u8 = 2;

/// A record's flag: it makes or ends objects.
pub const HAS_OBJECTS: u8 = 1;

/// The object is new. Words that are not in the entry are zero.
pub const ALLOCATED: u16 = 1;
/// The object ends.
pub const FREED: u16 = 2;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RecordHeader {
    length: U32,
    kind: u8,
    flags: u8,
    reserved: U16,
    stamp: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct EntryHeader {
    place: U64,
    size: U16,
    first: U16,
    words: U16,
    flags: U16,
}

/// Bytes of a record without entries.
pub const RECORD_BYTES: usize = size_of::<RecordHeader>();
/// Where its flags are.
const FLAGS_AT: usize = core::mem::offset_of!(RecordHeader, flags);
/// Where its stamp is.
const STAMP_AT: usize = core::mem::offset_of!(RecordHeader, stamp);
/// Bytes of an entry without words.
pub const ENTRY_BYTES: usize = size_of::<EntryHeader>();

/// What a transaction did to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The object's address: the offset of its slot in the heap.
    pub place: u64,
    /// Words of the object, those of its slot.
    pub size: u16,
    /// The first word that was written.
    pub first: u16,
    /// The words from there on, little endian.
    pub words: &'a [u8],
    /// [`ALLOCATED`] and [`FREED`].
    pub flags: u16,
}

impl Entry<'_> {
    /// An entry for an existing object, with all of its words.
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

/// A record in a frame.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When the transaction committed.
    pub stamp: u64,
    entries: &'a [u8],
    operation: Option<Operation<'a>>,
}

/// An entry's header. The words come after it.
pub fn entry_header(place: u64, size: u16, first: u16, words: u16, flags: u16) -> [u64; 2] {
    let header = EntryHeader {
        place: place.into(),
        size: size.into(),
        first: first.into(),
        words: words.into(),
        flags: flags.into(),
    };
    zerocopy::transmute!(header)
}

/// The number of words after the header at the start of these words; `None` if they are no entry.
fn entry_words(words: &[u64]) -> Option<usize> {
    let (header, _) = EntryHeader::read_from_prefix(words.as_bytes()).ok()?;
    Some(header.words.get().into())
}

/// The header of a record with words.
pub fn record_header(length: u32, flags: u8, stamp: u64) -> [u64; 2] {
    header(VALUES, length, flags, stamp)
}

/// A record's header.
fn header(kind: u8, length: u32, flags: u8, stamp: u64) -> [u64; 2] {
    let header = RecordHeader {
        length: length.into(),
        kind,
        flags,
        reserved: 0.into(),
        stamp: stamp.into(),
    };
    zerocopy::transmute!(header)
}

/// The entries of the transaction's record, in any order.
pub fn digest(entries: &[u64]) -> u32 {
    let (mut rest, mut sum) = (entries, 0_u64);
    while let Some(words) = entry_words(rest) {
        let (entry, behind) = rest.split_at(ENTRY_BYTES / 8 + words);
        sum = sum.wrapping_add(xxh3_64(entry.as_bytes()));
        rest = behind;
    }
    (sum ^ sum >> 32) as u32
}

/// Words of the record of an operation.
pub fn operation_words(operation: &Operation<'_>) -> usize {
    RECORD_BYTES / 8 + operation.words()
}

/// Appends the record of an operation, without a stamp yet.
pub fn push_operation(into: &mut Vec<u64>, operation: &Operation<'_>) {
    let length = u32::try_from(operation_words(operation) * 8);
    into.extend(header(OPERATION, length.expect("a record is smaller than a ring"), 0, 0));
    operation.push(into);
}

/// Appends a record with these entries; returns whether it creates or frees objects.
pub fn push<'e>(into: &mut Vec<u8>, stamp: u64, entries: impl Iterator<Item = Entry<'e>>) -> bool {
    let start = into.len();
    into.extend_from_slice(record_header(0, 0, stamp).as_bytes());
    for Entry { place, size, first, words, flags } in entries {
        into[start + FLAGS_AT] |= if flags == 0 { 0 } else { HAS_OBJECTS };
        let count = u16::try_from(words.len() / 8).expect("an object has few words");
        into.extend_from_slice(entry_header(place, size, first, count, flags).as_bytes());
        into.extend_from_slice(words);
    }
    let length = u32::try_from(into.len() - start).expect("a record is small");
    into[start..start + 4].copy_from_slice(&length.to_le_bytes());
    has_objects(&into[start..])
}

/// Appends a record of these words, with the stamp filled in; returns whether it creates or frees
/// objects.
pub fn push_words(into: &mut Vec<u8>, stamp: u64, words: impl Iterator<Item = u64>) -> bool {
    let start = into.len();
    words.for_each(|word| into.extend_from_slice(&word.to_le_bytes()));
    let at = start + STAMP_AT;
    into[at..at + 8].copy_from_slice(&stamp.to_le_bytes());
    has_objects(&into[start..])
}

fn has_objects(record: &[u8]) -> bool {
    record[FLAGS_AT] & HAS_OBJECTS != 0
}

/// Takes the first record off the bytes.
///
/// # Errors
///
/// What is wrong with it.
pub fn take<'a>(bytes: &mut &'a [u8]) -> Result<Record<'a>, &'static str> {
    let (header, _) =
        RecordHeader::read_from_prefix(bytes).map_err(|_| "a record that is cut off")?;
    let length = header.length.get() as usize;
    if length < RECORD_BYTES || length > bytes.len() {
        return Err("a record that is longer than its frame");
    }
    let (record, rest) = bytes.split_at(length);
    *bytes = rest;
    let body = &record[RECORD_BYTES..];
    let (entries, operation) = match header.kind {
        VALUES => (body, None),
        OPERATION => (&body[..0], Some(Operation::read(body)?)),
        _ => return Err("a record of a kind that this library does not know"),
    };
    Ok(Record { stamp: header.stamp.get(), entries, operation })
}

impl<'a> Record<'a> {
    /// The operation that has run, if the record names one instead of written words.
    pub fn operation(&self) -> Option<Operation<'a>> {
        self.operation
    }

    /// The record's entries, up to the first invalid one. A record of an operation has none.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry<'a>, &'static str>> + use<'a> {
        let mut rest = self.entries;
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let entry = take_entry(&mut rest);
            if entry.is_err() {
                rest = &[];
            }
            Some(entry)
        })
    }
}

fn take_entry<'a>(bytes: &mut &'a [u8]) -> Result<Entry<'a>, &'static str> {
    let (header, rest) =
        EntryHeader::read_from_prefix(bytes).map_err(|_| "an entry that is cut off")?;
    let length = usize::from(header.words.get()) * 8;
    let (words, rest) = rest.split_at_checked(length).ok_or("an entry without its words")?;
    *bytes = rest;
    let (size, first, flags) = (header.size.get(), header.first.get(), header.flags.get());
    if usize::from(first) + words.len() / 8 > usize::from(size) {
        return Err("an entry with more words than its object");
    }
    Ok(Entry { place: header.place.get(), size, first, words, flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_all_words_and_not_of_their_order() {
        let entry = |place, word| entry_header(place, 3, 0, 1, 0).into_iter().chain([word]);
        let of = |first: (u64, u64), second: (u64, u64)| {
            let words = entry(first.0, first.1).chain(entry(second.0, second.1));
            digest(&words.collect::<Vec<_>>())
        };
        assert_eq!(of((64, 1), (96, 2)), of((96, 2), (64, 1)));
        assert_ne!(of((64, 1), (96, 2)), of((64, 2), (96, 1)));
        assert_ne!(of((64, 1), (96, 2)), of((64, 1), (96, 3)));
    }
}
