//! What leads to an object of the program's own.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Persist;
use crate::heap::words::WORDS_MAX;

/// A pointer to an object of a [`Store`](super::Store), or null. It may be in objects, as in a list
/// of the program's own:
///
/// ```
/// use timestone::{Ptr, Session, Store};
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Node {
///     value: u64,
///     next: Ptr<Node>,
/// }
///
/// let directory = tempfile::tempdir()?;
/// let store = Store::open(directory.path())?;
/// let head: Ptr<Ptr<Node>> = store.root("head")?; // zeros, if the store has none: leads nowhere
/// let mut me = store.register()?;
/// for value in [1, 2, 3] {
///     me.run(|tx| {
///         let next = *tx.deref(head);
///         let first = tx.alloc(Node { value, next })?;
///         *tx.lock(head)? = first;
///         Ok(())
///     })?;
/// }
/// let values = me.read(|now| {
///     let (mut values, mut next) = (Vec::new(), *now.deref(head));
///     while !next.is_null() {
///         let node = now.deref(next);
///         values.push(node.value);
///         next = node.next;
///     }
///     values
/// });
/// assert_eq!(values, [3, 2, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is the object's offset in the store, so it stays the same when the store is opened again. A
/// null pointer is all zeros.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Ptr<T> {
    place: u64,
    of: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// Leads nowhere.
    pub const NULL: Self = Self::at(0);

    pub(super) const fn at(place: u64) -> Self {
        Self { place, of: PhantomData }
    }

    /// Whether it leads nowhere.
    pub fn is_null(self) -> bool {
        self.place == 0
    }
}

impl<T: Persist> Ptr<T> {
    pub(super) const WORDS: usize = {
        assert!(align_of::<T>() <= 8, "objects are aligned to 8 bytes");
        assert!(size_of::<T>() <= WORDS_MAX * 8, "an object has 8184 bytes at most");
        // One of no bytes has a place, too.
        if size_of::<T>() == 0 { 1 } else { size_of::<T>().div_ceil(8) }
    };

    /// The offset, if the session confirms that an object of this many words is there.
    #[inline]
    #[track_caller]
    pub(super) fn place(self, has_object: impl FnOnce(u64, usize) -> bool) -> u64 {
        let is_there = has_object(self.place, Self::WORDS);
        assert!(is_there, "{self:?} leads to no object of {} bytes", size_of::<T>());
        self.place
    }
}

/// The object that these words begin with.
#[inline]
pub fn typed<T: Persist>(words: &[u64]) -> &T {
    debug_assert!(size_of_val(words) >= size_of::<T>() && align_of::<T>() <= 8);
    // SAFETY: the words are as many bytes, aligned to 8, which `Ptr::WORDS` asserts is enough; a
    // `T` may have any bytes (`Persist`), and has no interior mutability.
    unsafe { &*words.as_ptr().cast::<T>() }
}

/// The object that these words begin with, to be changed.
#[inline]
pub fn typed_mut<T: Persist>(words: &mut [u64]) -> &mut T {
    debug_assert!(size_of_val(words) >= size_of::<T>() && align_of::<T>() <= 8);
    // SAFETY: the words are as many bytes, aligned to 8, which `Ptr::WORDS` asserts is enough; a
    // `T` may have any bytes and leaves none that is not initialized (`Persist`).
    unsafe { &mut *words.as_mut_ptr().cast::<T>() }
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Default for Ptr<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> PartialEq for Ptr<T> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> Hash for Ptr<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place.hash(state);
    }
}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ptr").field(&self.place).finish()
    }
}
