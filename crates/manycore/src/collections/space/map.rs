//! A map in a space.

use core::hash::BuildHasher;
use core::mem::{ManuallyDrop, needs_drop};

use foldhash::fast::RandomState;

use super::Space;
use crate::collections::versioned::art::Art;
use crate::collections::versioned::{Datum, Growing, Structure, btree};
use crate::mvrlu;
use crate::session::{RawSession, Sessions};

/// A map of any keys and values in a [`Space`]. `P` is its structure.
///
/// Every method is one atomic step to other threads (linearizable), unless its description says
/// otherwise. Methods with `&self` borrow a handle from the space; [`by`](Self::by) uses the
/// thread's own.
pub struct Map<K: Datum, V: Datum, P: Structure, M: Sessions + 'static = mvrlu::Domain> {
    parts: ManuallyDrop<P::Parts<K, V>>,
    space: Space<M>,
}

/// A map in the order of its keys: a B+tree. `collections/versioned/btree/mod.rs` describes it.
///
/// ```
/// use std::ops::Bound;
/// use manycore::collections::space::BTreeMap;
///
/// let words = BTreeMap::<String, usize>::default();
/// for word in "to be or not to be".split(' ') {
///     words.update_or_insert(word.to_owned(), |count| count.unwrap_or(&0) + 1);
/// }
/// assert_eq!(words.get("be"), Some(2));
/// let from_n = words.space().snapshot(|now| {
///     // As the standard library's, it has to be told that a range of strings is one of `str`.
///     let from = (Bound::Included("n"), Bound::Unbounded);
///     let range = now.range::<_, _, _, str, _>(&words, from);
///     range.map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>()
/// });
/// assert_eq!(from_n, ["not 1", "or 1", "to 2"]);
/// ```
pub type BTreeMap<K, V, M = mvrlu::Domain> = Map<K, V, btree::Usual, M>;

/// A map in the order of the bytes of its keys: an adaptive radix tree (ART).
/// `collections/versioned/art/mod.rs` describes it.
///
/// ```
/// use manycore::collections::space::ArtMap;
///
/// let words = ArtMap::<String, usize>::default();
/// for word in "to be or not to be, to bear or to beat".split([' ', ',']) {
///     words.update_or_insert(word.to_owned(), |count| count.unwrap_or(&0) + 1);
/// }
/// assert_eq!(words.get("to"), Some(4));
/// let from_be = words.space().snapshot(|now| {
///     let found = now.prefix(&words, "be").rev();
///     found.map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>()
/// });
/// assert_eq!(from_be, ["beat 1", "bear 1", "be 2"]);
/// ```
pub type ArtMap<K, V, M = mvrlu::Domain> = Map<K, V, Art, M>;

/// A map without an order: a hash table that grows, and takes no lock for reads, even while it
/// grows. `collections/versioned/growing/mod.rs` describes it. `S` hashes the keys. The default has
/// a secret for each map, which makes it hard to choose keys that collide (foldhash documents how
/// hard).
pub type HashMap<K, V, S = RandomState, M = mvrlu::Domain> = Map<K, V, Growing<S>, M>;

impl<K: Datum, V: Datum, S, M: Sessions> HashMap<K, V, S, M>
where
    S: BuildHasher + Send + Sync + 'static,
{
    /// Creates an empty map, in a space that may have other collections, with the caller's hasher.
    /// The lower bits of its hashes have to be good, because they choose the bucket.
    ///
    /// ```
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    /// use manycore::collections::space::{HashMap, Space};
    ///
    /// let space = <Space>::default();
    /// let hasher = BuildHasherDefault::<DefaultHasher>::default();
    /// let ages = HashMap::<String, u32, _>::with_hasher_in(hasher, &space);
    /// ages.set("Ann".to_owned(), 36);
    /// assert_eq!(ages.get("Ann"), Some(36));
    /// ```
    pub fn with_hasher_in(hasher: S, space: &Space<M>) -> Self {
        Self::with(hasher, space)
    }
}

impl<K: Datum, V: Datum, P: Structure, M: Sessions> Map<K, V, P, M> {
    /// Empty, in a space that may have other collections.
    #[must_use]
    pub fn new_in(space: &Space<M>) -> Self
    where
        P::Settings: Default,
    {
        Self::with(P::Settings::default(), space)
    }

    fn with(settings: P::Settings, space: &Space<M>) -> Self {
        let parts = space.with(|me| P::create(settings, &mut me.raw));
        Self { parts: ManuallyDrop::new(parts), space: space.clone() }
    }

    /// Empty, in a space of its own.
    #[must_use]
    pub fn new() -> Self
    where
        P::Settings: Default,
        M: Default,
    {
        Self::new_in(&Space::default())
    }

    /// The space in which it is.
    pub fn space(&self) -> &Space<M> {
        &self.space
    }

    pub(super) fn parts(&self) -> &P::Parts<K, V> {
        &self.parts
    }
}

impl<K: Datum, V: Datum, P: Structure, M: Sessions> Drop for Map<K, V, P, M> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and does not touch the parts after this.
        let parts = unsafe { ManuallyDrop::take(&mut self.parts) };
        // What there is otherwise goes with the space.
        if needs_drop::<K>() || needs_drop::<V>() || !self.space.is_unique() {
            self.space.with(|me| {
                // SAFETY: the handle is one of the map's space, and no thread has the map any more.
                unsafe { P::dismantle(parts, &mut me.raw) };
                me.raw.end_dying();
            });
        }
    }
}

impl<K, V, P, M> Default for Map<K, V, P, M>
where
    K: Datum,
    V: Datum,
    P: Structure<Settings: Default>,
    M: Sessions + Default,
{
    fn default() -> Self {
        Self::new()
    }
}

opaque! { [K: Datum, V: Datum, P: Structure, M: Sessions] Map<K, V, P, M>, "Map"; }
