//! Leaves, nodes of four sizes, and the anchor.
//!
//! ```text
//!   Node<4>      path | 4 bytes in order  | end | 4 links              64 bytes with its head
//!   Node<16>     path | 16 bytes in order | end | 16 links            192
//!   Node<48>     path | 48 bytes in order | end | 48 links            480
//!   Wide         path | end | 8 links to parts of 32 links each        96, and 288 for each part
//! ```
//!
//! A part is an object of its own, so that a new entry copies 32 links and not 256. If a node has
//! no key in a part, the part does not exist.

use crate::collections::versioned::word::Word;
use crate::session::Link;
use crate::sync::hint;

/// How many bytes of its path a node has.
const TAIL: usize = 8;

/// What a link from a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To a leaf.
    Leaf = 1,
    /// To a node of up to 4 bytes.
    Four,
    /// To a node of up to 16 bytes.
    Sixteen,
    /// To a node of up to 48 bytes.
    FortyEight,
    /// To a node of any bytes.
    Wide,
    /// To the root of the tree, to which no node leads.
    Anchor,
}

/// A link to a child, with the child's kind in bits of the address that are free since objects are
/// aligned to 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Below(Link<()>);

impl Below {
    const BITS: usize = 7;
    pub const NONE: Self = Self(Link::NULL);

    fn new<T>(link: Link<T>, kind: Kind) -> Self {
        debug_assert!(link.as_ptr().addr() & Self::BITS == 0, "objects are aligned");
        Self(Link::from_ptr(link.as_ptr().map_addr(|address| address | kind as usize)))
    }

    pub fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// What it leads to. None if it leads nowhere.
    #[inline]
    pub fn kind(self) -> Option<Kind> {
        Some(match self.0.as_ptr().addr() & Self::BITS {
            1 => Kind::Leaf,
            2 => Kind::Four,
            3 => Kind::Sixteen,
            4 => Kind::FortyEight,
            5 => Kind::Wide,
            6 => Kind::Anchor,
            _ => return None,
        })
    }

    pub fn is_leaf(self) -> bool {
        self.kind() == Some(Kind::Leaf)
    }

    /// The link itself, of the type for its kind.
    #[inline]
    pub fn link<T>(self) -> Link<T> {
        Link::from_ptr(self.0.as_ptr().map_addr(|address| address & !Self::BITS))
    }
}

/// What links lead to.
pub trait Target {
    const KIND: Kind;
}

impl<T: Target> From<Link<T>> for Below {
    #[inline]
    fn from(link: Link<T>) -> Self {
        Self::new(link, T::KIND)
    }
}

/// Where a tree begins.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    pub root: Below,
}

impl Target for Anchor {
    const KIND: Kind = Kind::Anchor;
}

/// A key with its value. The key never changes.
pub struct Leaf<K, V> {
    pub key: Word<K>,
    pub value: Word<V>,
}

impl<K, V> Clone for Leaf<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Leaf<K, V> {}

impl<K, V> Target for Leaf<K, V> {
    const KIND: Kind = Kind::Leaf;
}

/// The bytes with which all keys below a node begin, as far as the node stores them. They never
/// change.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Path {
    /// The last ones.
    tail: [u8; TAIL],
    depth: u32,
}

impl Path {
    /// The path of the first `depth` bytes of a key.
    ///
    /// # Panics
    ///
    /// If the key is too long.
    pub fn of(key: &[u8], depth: usize) -> Self {
        assert!(key.len() < u32::MAX as usize, "a key of 4 GiB: keys of a tree have to be shorter");
        let (mut tail, known) = ([0; TAIL], depth.min(TAIL));
        tail[TAIL - known..].copy_from_slice(&key[depth - known..depth]);
        Self { tail, depth: depth as u32 }
    }

    /// The number of these bytes: links of the node differ in the byte at this place.
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth as usize
    }

    /// The bytes from an index on, if the node has all of them.
    #[inline]
    pub fn since(&self, from: usize) -> Option<&[u8]> {
        self.tail.get(TAIL.checked_sub(self.depth().saturating_sub(from))?..)
    }

    /// Whether a key may begin with this path: from an index on, the bytes of the path that the
    /// node stores are equal to the key's.
    #[inline]
    pub fn admits(&self, key: &[u8], from: usize) -> bool {
        let depth = self.depth();
        let from = from.max(depth.saturating_sub(TAIL)).min(depth);
        key.get(from..depth) == self.since(from)
    }
}

/// A node with up to `N` bytes, in their order, and a link for each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Node<const N: usize> {
    pub path: Path,
    /// From where the links end on, all 255.
    bytes: [u8; N],
    /// The leaf of the key that ends at the end of the path.
    pub end: Below,
    below: [Below; N],
}

macro_rules! node_kinds {
    ($($size:literal $kind:ident)*) => {$(
        impl Target for Node<$size> {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}
node_kinds! { 4 Four 16 Sixteen 48 FortyEight }

impl<const N: usize> Node<N> {
    /// Creates a node with entries in the order of their bytes, for which there is room.
    pub fn new(path: Path, end: Below, entries: &[(u8, Below)]) -> Self {
        let mut node = Self { path, bytes: [u8::MAX; N], end, below: [Below::NONE; N] };
        for (at, &(byte, below)) in entries.iter().enumerate() {
            (node.bytes[at], node.below[at]) = (byte, below);
        }
        node
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.below.partition_point(|below| !below.is_none())
    }

    /// The index of the first byte that is not less.
    #[inline]
    pub fn place(&self, byte: u8) -> usize {
        if N > 16 {
            hint::touch(&self.bytes);
        }
        // All bytes are compared, without a branch: several at a time.
        usize::from(self.bytes.iter().map(|&other| u8::from(other < byte)).sum::<u8>())
    }

    /// What is at a place.
    #[inline]
    pub fn at(&self, place: usize) -> Below {
        let Some(below) = self.below.get(place) else { return Below::NONE };
        hint::touch(below);
        *below
    }

    /// Where a byte's link is, if it has one.
    #[inline]
    fn place_of(&self, byte: u8) -> Option<usize> {
        let place = self.place(byte);
        (self.bytes.get(place) == Some(&byte) && !self.at(place).is_none()).then_some(place)
    }

    /// A byte's link, or without a byte the link of the key that ends here.
    #[inline]
    pub fn get(&self, byte: Option<u8>) -> Below {
        match byte {
            None => self.end,
            Some(byte) => self.place_of(byte).map_or(Below::NONE, |place| self.at(place)),
        }
    }

    /// Sets a byte's link or, without a byte, the link of the key that ends here. If it has none
    /// yet, there is room for it.
    pub fn set(&mut self, byte: Option<u8>, below: Below) {
        let Some(byte) = byte else {
            self.end = below;
            return;
        };
        match self.place_of(byte) {
            Some(place) => self.below[place] = below,
            None => {
                let (place, length) = (self.place(byte), self.len());
                self.bytes.copy_within(place..length, place + 1);
                self.below.copy_within(place..length, place + 1);
                (self.bytes[place], self.below[place]) = (byte, below);
            }
        }
    }

    /// Removes a byte, or the key that ends here.
    pub fn remove(&mut self, byte: Option<u8>) {
        let Some(byte) = byte else {
            self.end = Below::NONE;
            return;
        };
        if let Some(place) = self.place_of(byte) {
            self.bytes.copy_within(place + 1.., place);
            self.below.copy_within(place + 1.., place);
            (self.bytes[N - 1], self.below[N - 1]) = (u8::MAX, Below::NONE);
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = (u8, Below)> {
        self.bytes.iter().copied().zip(self.below).take_while(|(_, below)| !below.is_none())
    }
}

/// How many parts a wide node has, and how many links each part.
pub const PARTS: usize = 8;
pub const PART: usize = 256 / PARTS;

/// A node with a place for each byte.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Wide {
    pub path: Path,
    /// The leaf of the key that ends at the end of the path.
    pub end: Below,
    /// The parts in which there are keys.
    pub parts: [Link<Part>; PARTS],
}

/// A part of a wide node. It is freed with its last key, or with the node.
#[derive(Clone, Copy)]
pub struct Part {
    pub below: [Below; PART],
}

impl Target for Wide {
    const KIND: Kind = Kind::Wide;
}

/// In which part a byte is, and where there.
#[inline]
pub fn part_of(byte: u8) -> (usize, usize) {
    (usize::from(byte) / PART, usize::from(byte) % PART)
}

impl Part {
    /// Creates one with entries of it, one at least.
    pub fn new(entries: &[(u8, Below)]) -> Self {
        let mut below = [Below::NONE; PART];
        entries.iter().for_each(|&(byte, entry)| below[part_of(byte).1] = entry);
        Self { below }
    }

    /// With the bytes that they have in a part at this place.
    pub fn entries(&self, at: usize) -> impl Iterator<Item = (u8, Below)> {
        let all = (at * PART..).zip(self.below);
        all.filter(|(_, below)| !below.is_none()).map(|(byte, below)| (byte as u8, below))
    }

    pub fn len(&self) -> usize {
        self.below.iter().filter(|below| !below.is_none()).count()
    }

    #[inline]
    pub fn at(&self, place: usize) -> Below {
        hint::touch(&self.below[place]);
        self.below[place]
    }
}
