//! Maps over any mechanism with sessions: what lists, hash tables and search trees over MV-RLU and RLU have in common.
//!
//! A map has a [`Shape`], in which keys are found and changed: a [chain](Chain), or a [search tree](Search). And it has one of them, or
//! many among which keys are [placed](Placement).

mod chain;
mod handle;
mod search;

pub use chain::Chain;
pub use handle::{Handle, Reads, Writes};
pub use search::Search;

use alloc::boxed::Box;
use core::hash::Hash;
use core::marker::PhantomData;

use super::hash::bucket_of;
use crate::session::{Conflict, Link, RawSession, Sessions, View};

/// How entries hang together, and are found and changed: in sessions of the domain to which they belong.
pub trait Shape {
    /// An entry, and what leads from it to others.
    type Node<K: Copy, V: Copy>: Copy;

    /// What an operation on one key has to see.
    const VIEW: View;

    /// The node with which one without entries begins. It has no key.
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

    /// Gives the key a value, unless it has one that is to be kept; returns the one it had.
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

    /// Calls `f` with each entry from a key on, or from the first, in the order of keys, until it says that it is enough.
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
    /// The shape of its parts.
    type Shape: Shape;
}

/// In which part a key is.
pub trait Placement<K>: Arrangement {
    /// The number of the part, of so many.
    fn place(key: &K, parts: usize) -> usize;
}

/// All keys in one part, of this shape, which then is in their order.
#[derive(Debug)]
pub struct One<S>(PhantomData<S>);

impl<S: Shape> Arrangement for One<S> {
    type Shape = S;
}

impl<K, S: Shape> Placement<K> for One<S> {
    #[inline]
    fn place(_key: &K, _parts: usize) -> usize {
        0
    }
}

/// Keys are spread over chains.
#[derive(Debug)]
pub struct Hashed;

impl Arrangement for Hashed {
    type Shape = Chain;
}

impl<K: Hash> Placement<K> for Hashed {
    #[inline]
    fn place(key: &K, parts: usize) -> usize {
        bucket_of(key, parts)
    }
}

/// Where a part begins.
type Root<K, V, P> = Link<<<P as Arrangement>::Shape as Shape>::Node<K, V>>;

/// A map in a domain of its own.
///
/// Keys and values are copied from version to version. Operations on one key are linearizable; snapshots and transactions see the whole
/// map at one moment.
pub struct Versioned<K: Copy, V: Copy, M: Sessions, P: Arrangement> {
    domain: M,
    roots: Box<[Root<K, V, P>]>,
}

impl<K: Copy, V: Copy, M: Sessions, P: Arrangement> Versioned<K, V, M, P> {
    /// So many parts without entries, in a domain that has nothing else.
    pub(super) fn with_parts(domain: M, parts: usize) -> Self {
        assert!(parts > 0, "a hash table has one bucket at least");
        let mut handle = domain.register();
        let roots = (0..parts)
            .map(|_| {
                // SAFETY: a session, from begin to end.
                unsafe {
                    handle.begin(View::Latest);
                    let root = handle.alloc(P::Shape::first());
                    handle.commit();
                    root
                }
            })
            .collect();
        drop(handle);
        Self { domain, roots }
    }

    /// The domain, for its statistics and limits.
    pub fn domain(&self) -> &M {
        &self.domain
    }
}

impl<K: Copy, V: Copy, M: Sessions, P: Arrangement> core::fmt::Debug for Versioned<K, V, M, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Versioned").field("parts", &self.roots.len()).finish_non_exhaustive()
    }
}
