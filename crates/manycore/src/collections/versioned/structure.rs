//! The operations that maps with any keys and values need from the structure that keeps their
//! entries.

use core::ops::RangeBounds;

use super::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession, View};

/// How entries hang together, in nodes that hold words.
pub trait Structure: Sized + 'static {
    /// Where it begins. Links to objects of one domain.
    type Parts<K: Datum, V: Datum>: Send + Sync;

    /// What it is made with, as a hasher.
    type Settings;

    /// What an operation on one key has to see.
    const VIEW: View;

    /// Whether it wants to know by how many keys there are more.
    const COUNTS: bool = false;

    /// Without entries.
    fn create<K: Datum, V: Datum, S: RawSession>(
        settings: Self::Settings,
        handle: &mut S,
    ) -> Self::Parts<K, V>;

    /// Frees all nodes, keys and values of an unused structure, in as many transactions as that
    /// takes.
    ///
    /// # Safety
    ///
    /// The handle is in no session, and belongs to the parts' domain. The parts are not used again.
    unsafe fn dismantle<K: Datum, V: Datum, S: RawSession>(
        parts: Self::Parts<K, V>,
        handle: &mut S,
    );

    /// Calls `f` with each entry until it returns false.
    ///
    /// # Safety
    ///
    /// In a snapshot of the domain to which the parts belong.
    unsafe fn for_each<'s, K: Datum, V: Datum, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &'s S,
        f: impl FnMut(&'s Word<K>, &'s Word<V>) -> bool,
    );
}

/// What becomes of an entry.
pub enum Change<V> {
    /// Nothing changes.
    Keep,
    /// The key gets this value.
    Put(Word<V>),
    /// The entry is removed.
    Remove,
}

opaque! { [V] Change<V>, "Change"; }

/// Receives the objects on which an answer depends.
pub trait Observe<S> {
    /// Whether it needs the answer's dependencies, so that finding them is worth the cost.
    #[inline]
    fn is_interested(&self) -> bool {
        true
    }

    /// The answer depends on this object: while the object is unchanged, the answer is, too.
    fn observe<T: Copy + 'static>(&self, link: Link<T>);
}

impl<S, O: Observe<S>> Observe<S> for &O {
    #[inline]
    fn is_interested(&self) -> bool {
        (*self).is_interested()
    }

    #[inline]
    fn observe<T: Copy + 'static>(&self, link: Link<T>) {
        (*self).observe(link);
    }
}

/// Does not want to know.
impl<S> Observe<S> for () {
    #[inline]
    fn is_interested(&self) -> bool {
        false
    }

    #[inline]
    fn observe<T: Copy + 'static>(&self, _link: Link<T>) {}
}

/// A structure in which keys are found by their borrowed forms.
pub trait Seek<K: Datum, Q: ?Sized>: Structure {
    /// The key's entry.
    ///
    /// # Safety
    ///
    /// In a session of this view or of a snapshot, of the domain to which the parts belong.
    unsafe fn find<'s, V: Datum, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &'s S,
        key: &Q,
        observer: &impl Observe<S>,
    ) -> Option<(&'s Word<K>, &'s Word<V>)>;

    /// Applies the decision of `f`, which gets the entry's value, to the key's entry. If the key is
    /// missing and has to be inserted, `make` makes the key. Values and keys that the map no longer
    /// has are freed. Also returns by how many the number of keys has grown.
    ///
    /// # Errors
    ///
    /// If another thread has locked it. Then the session can only abort.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find). `make` returns a key like this one; if this fails or panics,
    /// the session aborts, and the results of `f` and `make` belong to the caller again.
    unsafe fn change<V: Datum, S: RawSession, R>(
        parts: &Self::Parts<K, V>,
        session: &mut S,
        key: &Q,
        observer: &impl Observe<S>,
        make: impl FnOnce(&mut S) -> Word<K>,
        f: impl FnOnce(&mut S, Option<&V>) -> (Change<V>, R),
    ) -> Result<(R, isize), Conflict>;

    /// A commit has inserted this many keys more than it has removed.
    ///
    /// # Safety
    ///
    /// In no session, with a handle of the domain to which the parts belong.
    #[inline]
    unsafe fn has_changed<V: Datum, S: RawSession>(
        _parts: &Self::Parts<K, V>,
        _handle: &mut S,
        _more: isize,
    ) {
    }
}

/// A structure with sorted keys, in the same order as their borrowed forms.
pub trait Ordered<K: Datum, Q: ?Sized>: Structure {
    /// Entries, from either end.
    type Range<'r, V: Datum, S: RawSession + 'r, O: Observe<S>>: DoubleEndedIterator<
        Item = (&'r K, &'r V),
    >;

    /// The entries of a range.
    ///
    /// # Panics
    ///
    /// If the range begins after its end, as of the standard library's.
    ///
    /// # Safety
    ///
    /// To be called in a snapshot of the parts' domain, which changes nothing as long as the result
    /// is used.
    unsafe fn range<'r, V: Datum, S: RawSession, O: Observe<S>>(
        parts: &Self::Parts<K, V>,
        session: &'r S,
        range: &impl RangeBounds<Q>,
        observer: O,
    ) -> Self::Range<'r, V, S, O>;
}
