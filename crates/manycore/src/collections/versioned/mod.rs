//! Maps over any mechanism with sessions: the common part of lists, hash tables and search trees
//! over MV-RLU and RLU.
//!
//! A map has a [placement](Placement) of keys: [one](One) part of a [`Shape`], which is a
//! [chain](Chain) or a [search tree](Search); [a fixed number of chains](Hashed), with keys placed
//! by hash; or a [growing number of buckets](Growing).

pub mod art;
pub mod btree;
mod chain;
mod growing;
mod handle;
mod roots;
mod search;
mod structure;
mod word;

pub use chain::Chain;
pub use growing::Growing;
#[cfg(not(loom))]
pub(in crate::collections) use growing::{Bucket, Directory, UNTOLD};
pub use handle::{Handle, Reads, Writes};
pub use roots::{Hashed, One};
pub use search::Search;
pub(in crate::collections) use structure::{Change, Observe};
pub use structure::{Ordered, Seek, Structure};
pub use word::Datum;
pub(in crate::collections) use word::Word;

use crate::session::{Conflict, Link, RawSession, Sessions, View};

/// How entries are linked, found and changed, in sessions of the domain to which they belong.
pub trait Shape {
    /// An entry, and what leads from it to others.
    type Node<K: Copy, V: Copy>: Copy;

    /// What an operation on one key has to see.
    const VIEW: View;

    /// The first node of a structure without entries. It has no key.
    fn first<K: Copy, V: Copy>() -> Self::Node<K, V>;

    /// The key's value.
    ///
    /// # Safety
    ///
    /// In a session of this view or of a snapshot; the root is of this shape.
    unsafe fn get<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &S,
        root: Link<Self::Node<K, V>>,
        key: &K,
    ) -> Option<V>;

    /// Gives the key a value, unless the key has one that must be kept; returns the old value.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    unsafe fn insert<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Self::Node<K, V>>,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict>;

    /// Takes the key out; returns its value.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    unsafe fn remove<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &mut S,
        root: Link<Self::Node<K, V>>,
        key: &K,
    ) -> Result<Option<V>, Conflict>;

    /// Calls `f` with each entry from a key on, or from the first, in the order of keys, until it
    /// returns false.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    unsafe fn visit<K: Copy + Ord, V: Copy, S: RawSession>(
        session: &S,
        root: Link<Self::Node<K, V>>,
        from: Option<&K>,
        f: impl FnMut(&K, &V) -> bool,
    );
}

/// What a map is made of.
pub trait Arrangement {
    /// Where it begins. Links to objects of one domain.
    type Parts<K: Copy, V: Copy>: Send + Sync;

    /// What an operation on one key has to see.
    const VIEW: View;

    /// Called when a handle is dropped, with the number of keys that it has inserted, less those
    /// that it has removed, without the ones that it has reported.
    fn has_gone<K: Copy, V: Copy>(_parts: &Self::Parts<K, V>, _more: isize) {}
}

/// How keys are found there, and changed.
pub trait Placement<K: Copy>: Arrangement {
    /// The key's value.
    ///
    /// # Safety
    ///
    /// In a session of this view or of a snapshot, of the domain to which the parts belong.
    unsafe fn get<V: Copy, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &S,
        key: &K,
    ) -> Option<V>;

    /// Gives the key a value, unless the key has one that must be kept; returns the old value.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    unsafe fn insert<V: Copy, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &mut S,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict>;

    /// Takes the key out; returns its value.
    ///
    /// # Safety
    ///
    /// As for [`get`](Self::get).
    unsafe fn remove<V: Copy, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &mut S,
        key: &K,
    ) -> Result<Option<V>, Conflict>;

    /// Calls `f` with each entry.
    ///
    /// # Safety
    ///
    /// In a snapshot, of the domain to which the parts belong.
    unsafe fn for_each<V: Copy, S: RawSession>(
        parts: &Self::Parts<K, V>,
        session: &S,
        f: impl FnMut(&K, &V),
    );

    /// After a commit: the calling thread has inserted this many keys more than it has removed,
    /// since this was last set to 0.
    ///
    /// # Safety
    ///
    /// The caller is in no session; the handle belongs to the parts' domain.
    #[inline]
    unsafe fn has_changed<V: Copy, S: RawSession>(
        _parts: &Self::Parts<K, V>,
        _handle: &mut S,
        _more: &mut isize,
    ) {
    }
}

/// A map in a domain of its own.
///
/// Keys and values are copied from version to version. Operations on one key are linearizable;
/// snapshots and transactions see the whole map at one moment.
pub struct Versioned<K: Copy, V: Copy, M: Sessions, P: Arrangement> {
    domain: M,
    parts: P::Parts<K, V>,
}

impl<K: Copy, V: Copy, M: Sessions, P: Arrangement> Versioned<K, V, M, P> {
    /// The domain, for its statistics and limits.
    pub fn domain(&self) -> &M {
        &self.domain
    }
}

opaque! { [K: Copy, V: Copy, M: Sessions, P: Arrangement] Versioned<K, V, M, P>, "Versioned"; }

/// A new object.
pub(in crate::collections) fn create<T: Copy, S: RawSession>(handle: &mut S, data: T) -> Link<T> {
    // SAFETY: the handle has just been registered, and so is in no session; the session is begun
    // before the allocation, and ends here.
    unsafe {
        handle.begin(View::Latest);
        let object = handle.alloc(data);
        handle.commit().expect("a session that has locked nothing meets no conflict");
        object
    }
}
