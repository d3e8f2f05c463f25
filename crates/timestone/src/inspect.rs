//! Looking at a store's files without opening it for writing.

use std::path::Path;

use crate::device::Directory;
use crate::error::Result;
use crate::heap::{Heap, words};
use crate::journal::operation::Operation;
use crate::journal::record::{Entry, Record};
use crate::store::Replay;
use crate::superblock::Superblock;
use crate::volume::{Recovered, Source, Target};

/// What is in a store's files.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Contents {
    /// The root of the store.
    pub superblock: Superblock,
    /// Whether the store was closed, so that opening it recovers nothing.
    pub is_closed: bool,
    /// All commits up to this stamp are there.
    pub horizon: u64,
    /// The number of transactions in the journal, which recovery applies to the image.
    pub transactions: u64,
    /// How many of them are calls of operations: only a program that has registered these can
    /// recover the store.
    pub operations: u64,
    /// Bytes of the journal's frames.
    pub journal_bytes: u64,
    /// Objects that are there after recovery.
    pub objects: u64,
    /// Bytes of their slots.
    pub object_bytes: u64,
}

/// Reads the superblock and the journal of the store in a directory, and writes nothing. The image
/// is read but its objects are not checked, so the numbers of objects are 0.
///
/// # Errors
///
/// As of [`verify`].
pub fn probe(directory: impl AsRef<Path>) -> Result<Contents> {
    let storage = Directory::open_to_read(directory)?;
    let recovered = Recovered::read_existing(&storage, &mut Unseen)?;
    Ok(Contents::of(&recovered, core::iter::empty()))
}

/// Reads all files of the store in a directory as recovery does, and writes none. It compares each
/// frame's checksum, and checks that each entry fits the object that it changes.
///
/// # Errors
///
/// The errors of [`Store::open`](crate::Store::open), and an error if there is no store.
/// [`Error::UnknownOperation`](crate::Error::UnknownOperation) if the journal has calls of
/// operations: recovery would have to run them again, and only the program has their functions.
pub fn verify(directory: impl AsRef<Path>) -> Result<Contents> {
    dump(directory, |_, _| ())
}

/// As [`verify`], and passes the data that it reads to a visitor: the image's objects, which have
/// no record, and the journal's records, each with its entries.
///
/// # Errors
///
/// As of [`verify`].
pub fn dump(
    directory: impl AsRef<Path>,
    mut visit: impl FnMut(Option<&Record<'_>>, Entry<'_>),
) -> Result<Contents> {
    let storage = Directory::open_to_read(directory)?;
    let heap = Heap::to_read()?;
    let mut seen = Seen { target: Replay::new(&heap, &[]), visit: &mut visit };
    let recovered = Recovered::read_existing(&storage, &mut seen)?;
    Ok(Contents::of(&recovered, heap.live()))
}

impl Contents {
    /// What was read, and the objects: place and words.
    fn of(recovered: &Recovered, live: impl Iterator<Item = (u64, usize)>) -> Self {
        let (mut objects, mut object_bytes) = (0, 0);
        for (_, words) in live {
            objects += 1;
            object_bytes += words::slot_bytes(words) as u64;
        }
        Self {
            superblock: recovered.superblock(),
            is_closed: recovered.is_clean(),
            horizon: recovered.horizon,
            transactions: recovered.transactions,
            operations: recovered.operations,
            journal_bytes: recovered.frame_bytes(),
            objects,
            object_bytes,
        }
    }
}

/// What takes everything and keeps nothing.
struct Unseen;

impl Target for Unseen {
    fn apply(&mut self, _: Source<'_>, _: Entry<'_>) -> Result<(), String> {
        Ok(())
    }

    fn replay(&mut self, _: &Record<'_>, _: Operation<'_>, _: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Fills a heap, and passes what it is filled with to the visitor.
struct Seen<'a> {
    target: Replay<'a>,
    visit: &'a mut dyn FnMut(Option<&Record<'_>>, Entry<'_>),
}

impl Target for Seen<'_> {
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        let record = match source {
            Source::Image => None,
            Source::Journal { record, .. } => Some(record),
        };
        (self.visit)(record, entry);
        self.target.apply(source, entry)
    }

    fn replay(
        &mut self,
        record: &Record<'_>,
        call: Operation<'_>,
        seed: u64,
    ) -> Result<(), String> {
        self.target.replay(record, call, seed)
    }

    fn finish(&mut self) -> Result<()> {
        self.target.finish()
    }
}
