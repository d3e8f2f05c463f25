//! Bytes of any length.
//!
//! ```text
//!   blob   | its first piece | bytes |
//!   piece  | next | up to 1022 words |
//! ```

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::own;
use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use crate::heap::words::WORDS_MAX;

/// The number of bytes in the largest piece, without the word that leads to the next.
const PIECE: usize = (WORDS_MAX - 1) * 8;

/// A pointer to bytes of any length, which are written once: [`write`](Self::write). It is plain
/// data, and so can be a value of a map, or a part of one:
///
/// ```
/// use timestone::{Blob, Map, Store};
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let pictures: Map<u64, Blob> = store.map("pictures")?;
/// let mut me = store.register()?;
/// me.run(|tx| {
///     let blob = Blob::write(tx, &[7; 50_000])?;
///     pictures.insert(tx, 1, blob)
/// })?;
/// let bytes = me.read(|now| pictures.get(now, &1).map(|blob| blob.read(now)));
/// assert_eq!(bytes.unwrap().len(), 50_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// All zeros are one without bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Blob {
    first: u64,
    bytes: u64,
}

impl Blob {
    /// How many bytes it has.
    pub fn len(self) -> u64 {
        self.bytes
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// Words of each piece, the first one first.
    fn pieces(self) -> impl Iterator<Item = usize> {
        let whole = (self.bytes / PIECE as u64).min(usize::MAX as u64) as usize;
        let rest = (self.bytes % PIECE as u64).div_ceil(8) as usize;
        let rest = (rest > 0).then_some(1 + rest);
        std::iter::repeat_n(WORDS_MAX, whole).chain(rest)
    }

    /// Writes bytes. They exist once the transaction has committed and has stored the blob in an
    /// object. They stay until they are [freed](Self::free).
    ///
    /// A transaction's record takes at most half of its thread's ring. So for more than 128 KiB,
    /// [`Options::ring_bytes`](super::Options::ring_bytes) has to be larger.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if the heap is full. A commit of too many bytes fails
    /// with [`Error::TooLarge`](crate::Error::TooLarge).
    pub fn write(tx: &mut Transaction<'_, '_>, bytes: &[u8]) -> Result<Self, Stop> {
        own::mark(tx)?;
        let mut blob = Self { first: 0, bytes: bytes.len() as u64 };
        // Each leads to the next: so the last one comes first.
        for part in bytes.chunks(PIECE).rev() {
            let mut words = vec![0; 1 + part.len().div_ceil(8)];
            words[0] = blob.first;
            words[1..].as_mut_bytes()[..part.len()].copy_from_slice(part);
            blob.first = tx.allocate(&words)?;
        }
        Ok(blob)
    }

    /// The bytes.
    ///
    /// # Panics
    ///
    /// If there is no such blob.
    #[track_caller]
    pub fn read(self, session: &impl Session) -> Vec<u8> {
        let (mut bytes, mut place) = (Vec::new(), self.first);
        for words in self.pieces() {
            let piece = piece(session, place, words);
            let left = self.bytes - bytes.len() as u64;
            bytes.extend_from_slice(&piece[1..].as_bytes()[..left.min(PIECE as u64) as usize]);
            place = piece[0];
        }
        bytes
    }

    /// The bytes end with the commit.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`](super::Member::run).
    ///
    /// # Panics
    ///
    /// If there is no such blob.
    ///
    /// # Safety
    ///
    /// As of [`Transaction::free`], for the blob and its copies.
    #[track_caller]
    pub unsafe fn free(self, tx: &mut Transaction<'_, '_>) -> Result<(), Stop> {
        let mut place = self.first;
        for words in self.pieces() {
            let next = piece(tx, place, words)[0];
            tx.free_words(place, words)?;
            place = next;
        }
        Ok(())
    }
}

/// The words of a piece.
///
/// # Panics
///
/// If there is none.
#[track_caller]
fn piece(session: &impl Objects, place: u64, words: usize) -> &[u64] {
    let is_there = session.has_object(place, words);
    assert!(is_there, "a blob leads to {place}, where no object of {words} words is");
    session.note(place, words);
    session.object(place, words)
}
