//! What readers are fed with.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Pieces that readers treat apart.
const PIECES: &[&[u8]] = &[
    b"0",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1e308",
    b"nan",
    b"4294967295",
    b"-",
    b",",
    b"\n",
    b" ",
    b"\0",
    b"\"",
    b"[",
    b"]",
    b"{",
    b"}",
    b"=",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x00\x00\x00\x80",
    b"\xc3\xa9",
];

/// One change.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    /// In place of as many bytes.
    Over(Index, &'static [u8]),
    Remove(Index, Index),
    /// A part once more, up to so long, elsewhere.
    Again(Index, Index, Index),
    Cut(Index),
}

/// A part that is repeated is at most this long.
const AGAIN_MAX: usize = 4096;

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    let piece = || select(PIECES);
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        4 => (at(), piece()).prop_map(|(at, piece)| Change::Insert(at, piece.to_vec())),
        4 => (at(), piece()).prop_map(|(at, piece)| Change::Over(at, piece)),
        1 => (at(), vec(any::<u8>(), 0..32)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => (at(), at()).prop_map(|(from, to)| Change::Remove(from, to)),
        2 => (at(), at(), at()).prop_map(|(from, to, at)| Change::Again(from, to, at)),
        1 => at().prop_map(Change::Cut),
    ]
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |index: &Index, bytes: &[u8]| index.index(bytes.len() + 1);
        let range = |from: &Index, to: &Index, bytes: &[u8]| {
            let (from, to) = (place(from, bytes), place(to, bytes));
            from.min(to)..from.max(to)
        };
        match self {
            Self::Set(_, _) if bytes.is_empty() => {}
            Self::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Insert(at, more) => {
                let at = place(at, bytes);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Over(at, piece) => {
                let at = place(at, bytes);
                let end = (at + piece.len()).min(bytes.len());
                bytes.splice(at..end, piece.iter().copied());
            }
            Self::Remove(from, to) => drop(bytes.drain(range(from, to, bytes))),
            Self::Again(from, to, at) => {
                let mut range = range(from, to, bytes);
                range.end = range.end.min(range.start + AGAIN_MAX);
                let (part, at) = (bytes[range].to_vec(), place(at, bytes));
                bytes.splice(at..at, part);
            }
            Self::Cut(at) => bytes.truncate(place(at, bytes)),
        }
    }
}

/// Valid inputs with a few changes, and any bytes.
pub fn inputs(valid: &[&[u8]]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let any_bytes = vec(any::<u8>(), 0..512).boxed();
    let any_pieces = vec(select(PIECES), 0..64).prop_map(|pieces| pieces.concat()).boxed();
    if valid.is_empty() {
        return prop_oneof![any_bytes, any_pieces].boxed();
    }
    let valid: Vec<Rc<[u8]>> = valid.iter().map(|bytes| Rc::from(*bytes)).collect();
    let changed = (select(valid), vec(change(), 1..6)).prop_map(|(valid, changes)| {
        let mut bytes = valid.to_vec();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        bytes
    });
    prop_oneof![6 => changed, 1 => any_bytes, 1 => any_pieces].boxed()
}
