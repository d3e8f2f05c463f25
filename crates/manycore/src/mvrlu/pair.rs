//! A key and a value of bytes, as one object that is written once.
//!
//! ```text
//!   small   | head | lengths | key | value |
//!   large   | head | lengths | box |            the box has the key and the value
//! ```
//!
//! With a key and a value of 8 bytes it is 32 bytes large, and on one line.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::mem::offset_of;

use manycore_traits::{Conflict, Link, RawSession};

use super::handle::Handle;
use super::object::{Head, Kind, Master, OwnedKindOf};
use super::record::Local;
use crate::clock::Clock;
use crate::session::object::{FREED, OWNED_MAX, owned};
use crate::session::pool::{class_of, size_of_class};

/// A pair's object. Its contents are valid as long as a session lasts that has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair(Link<Lengths>);

#[derive(Clone, Copy)]
#[repr(C)]
struct Lengths {
    key: u32,
    value: u32,
}

/// What the object of a large pair owns.
#[repr(C)]
struct Large {
    lengths: Lengths,
    bytes: Box<[u8]>,
}

/// From a small object's begin to its bytes.
const BYTES: usize = size_of::<Master<Lengths>>();
const _: () = {
    assert!(offset_of!(Master<Lengths>, data) == offset_of!(Master<Large>, data));
    assert!(BYTES == 16, "a pair of 8 bytes each is one of the smallest objects");
};

const KINDS: usize = class_of(OWNED_MAX) + 1;

/// The kinds of small pairs, by the size of their memory.
const SMALL: &[Kind; KINDS] = &{
    let mut kinds = [const { OwnedKindOf::<()>::KIND }; KINDS];
    let mut class = 0;
    while class < KINDS {
        kinds[class].object = size_of_class(class);
        class += 1;
    }
    kinds
};

const LARGE: &Kind = &OwnedKindOf::<Large>::KIND;

impl Lengths {
    /// Bytes of a small object.
    #[inline]
    fn size(self) -> usize {
        BYTES + self.key as usize + self.value as usize
    }

    #[inline]
    fn kind(self) -> &'static Kind {
        if self.size() > OWNED_MAX { LARGE } else { &SMALL[class_of(self.size())] }
    }
}

impl Pair {
    /// The longest key or value.
    pub const LONGEST: usize = u32::MAX as usize;

    /// # Safety
    ///
    /// The pair was made and is not ended.
    #[inline]
    unsafe fn lengths(self) -> Lengths {
        // SAFETY: both kinds of objects begin with their head and the lengths, which do not change;
        // the object is valid (contract of this function).
        *unsafe { owned(self.0) }
    }

    /// The key and the value.
    ///
    /// # Safety
    ///
    /// The pair is there for as long as `'a`.
    #[inline]
    pub unsafe fn get<'a>(self) -> (&'a [u8], &'a [u8]) {
        // SAFETY: the object is there (contract of this function), and is a `Large` or has its
        // bytes after the lengths, by which `make_pair` has chosen; it does not change.
        unsafe {
            let lengths = self.lengths();
            let bytes = if lengths.size() > OWNED_MAX {
                &*owned::<Large>(Link::from_ptr(self.0.as_ptr())).bytes
            } else {
                let bytes = self.0.as_ptr().cast::<u8>().add(BYTES);
                core::slice::from_raw_parts(bytes, lengths.size() - BYTES)
            };
            bytes.split_at_unchecked(lengths.key as usize)
        }
    }

    /// Whether more ends with it than the domain's memory.
    ///
    /// # Safety
    ///
    /// The pair is there.
    pub unsafe fn is_large(self) -> bool {
        // SAFETY: the pair is there (contract of this function).
        unsafe { self.lengths() }.size() > OWNED_MAX
    }

    fn bare(self) -> Link<()> {
        Link::from_ptr(self.0.as_ptr())
    }
}

/// In sessions only, as [`get`](Pair::get): a thread that hashes a pair has found it.
impl Hash for Pair {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        // SAFETY: pairs that are hashed are in nodes that a session has found.
        state.write(unsafe { self.get() }.0);
    }
}

impl<C: Clock> Handle<'_, C> {
    /// A new pair, which no other thread knows. Neither is longer than [`Pair::LONGEST`].
    #[inline]
    pub(crate) fn make_pair(&mut self, key: &[u8], value: &[u8]) -> Pair {
        debug_assert!(key.len().max(value.len()) <= Pair::LONGEST, "the caller looks");
        let lengths = Lengths { key: key.len() as u32, value: value.len() as u32 };
        let size = lengths.size();
        if size > OWNED_MAX {
            let mut bytes = Vec::with_capacity(key.len() + value.len());
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(value);
            let large = Large { lengths, bytes: bytes.into_boxed_slice() };
            return Pair(Link::from_ptr(self.make_owned(large).as_ptr()));
        }
        let shared_pool = &self.domain.shared_pool;
        let place = self.local().pool.take(size, shared_pool);
        // SAFETY: `take` returns memory of at least `size` bytes, aligned to 32, in no other use:
        // the head, the lengths and the bytes are within it.
        unsafe {
            place.cast::<Head>().write(Head::new(core::ptr::null_mut()));
            place.add(offset_of!(Master<Lengths>, data)).cast::<Lengths>().write(lengths);
            let bytes = place.add(BYTES);
            bytes.copy_from_nonoverlapping(key.as_ptr(), key.len());
            bytes.add(key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        Pair(Link::from_ptr(place.cast()))
    }

    /// Has a new pair end if the session is aborted.
    ///
    /// # Safety
    ///
    /// In a session, which has the pair in a node if it commits. Once.
    pub(crate) unsafe fn claim_pair(&mut self, pair: Pair) {
        // SAFETY: the pair was made in the lines above, so that its lengths are written.
        let kind = unsafe { pair.lengths() }.kind();
        self.kept.fresh.push((pair.0.as_ptr().cast(), kind));
    }

    /// The end of a pair that no thread has.
    ///
    /// # Safety
    ///
    /// No commit has put it into a node, or no thread uses the node any more; to be called once.
    pub(crate) unsafe fn end_pair(&mut self, pair: Pair) {
        let shared_pool = &self.domain.shared_pool;
        // SAFETY: the pair was made, of this kind, and no thread has it (contract of this
        // function).
        unsafe {
            let kind = pair.lengths().kind();
            let Local { pool, dying, .. } = self.local();
            dying.end(pair.0.as_ptr().cast(), kind, pool, shared_pool);
        }
    }

    /// Locks a pair, so that freeing it meets no conflict.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::free_owned`].
    pub(crate) unsafe fn lock_pair(&mut self, pair: Pair) -> Result<(), Conflict> {
        // SAFETY: session and pair are there (contract of this function); the pair was made of this
        // kind, whose copies have no data.
        unsafe { self.lock_bare_of_kind(pair.bare(), pair.lengths().kind(), 0) }
    }

    /// Locks a pair, and frees it with the session's commit.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::free_owned`].
    pub(crate) unsafe fn free_pair(&mut self, pair: Pair) -> Result<(), Conflict> {
        // SAFETY: session and pair are there (contract of this function); the pair was made of this
        // kind, whose copies have no data.
        unsafe { self.lock_bare_of_kind(pair.bare(), pair.lengths().kind(), FREED) }
    }
}
