//! Maps in the order of their keys' bytes: the methods that other maps do not have.

use super::Space;
use super::identity::check;
use super::map::{ArtMap, Map};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::collections::versioned::Datum;
use crate::collections::versioned::art::{Art, ArtKey, Nodes};
use crate::session::{Open, Sessions, View};

impl<K: Datum + ArtKey, V: Datum, M: Sessions> Map<K, V, Art, M> {
    /// Checks, for tests, that all nodes of the tree are right. Returns how many there are.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub fn check(&self) -> Nodes {
        let nodes = self.space().snapshot(|now| {
            // SAFETY: `Snapshot` exists only while its session is open, which is one of this map's
            // space.
            unsafe { Art::check::<K, V, _>(*self.parts(), now.session) }
        });
        nodes.unwrap_or_else(|wrong| panic!("a tree that is not whole: {wrong}"))
    }

    /// Creates a map from sorted entries, in a space that may have other collections. Each node is
    /// created once, and other threads see all of them at once. All happens in a session:
    /// meanwhile, old versions of everything that others change in the space are kept.
    ///
    /// # Panics
    ///
    /// If a key is not larger than the one before.
    pub fn from_sorted(space: &Space<M>, entries: impl IntoIterator<Item = (K, V)>) -> Self {
        let map = Self::new_in(space);
        space.with(|me| {
            let open = Open::begin(&mut me.raw, View::Snapshot);
            // SAFETY: `open` has begun the session, on a handle of the map's space; no other thread
            // has the map. If this fails, the session is aborted.
            let loaded = unsafe { Art::load(*map.parts(), &mut *open.handle, entries) };
            let done = loaded.and_then(|()| open.commit());
            done.expect("no other thread has the map, and so there is no conflict");
        });
        map
    }

    /// Calls `f` with the keys that begin with these bytes, and their values, in order, until it
    /// returns false. All are of one moment; `f` runs in a session.
    ///
    /// ```
    /// use manycore::collections::space::ArtMap;
    ///
    /// let words = [("to", 1), ("tea", 2), ("ten", 3), ("tent", 4)];
    /// let words: ArtMap<&str, u32> = words.into_iter().collect();
    /// let mut sum = 0;
    /// words.prefix("te", |_, n| {
    ///     sum += n;
    ///     true
    /// });
    /// assert_eq!(sum, 9);
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>, mut f: impl FnMut(&K, &V) -> bool) {
        self.space().snapshot(|now| _ = now.prefix(self, prefix).all(|(key, value)| f(key, value)));
    }
}

impl<M: Sessions> Snapshot<'_, '_, M> {
    /// The keys that begin with these bytes and their values, in their order, from either end.
    ///
    /// # Panics
    ///
    /// If the map is one of another space.
    pub fn prefix<'r, K: Datum + ArtKey, V: Datum>(
        &'r self,
        map: &'r ArtMap<K, V, M>,
        prefix: impl AsRef<[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&'r K, &'r V)> {
        check(self.domain, map.space().domain());
        // SAFETY: a `Snapshot` exists only while its session is open, which is one of the map's
        // domain, and changes nothing.
        unsafe { Art::prefix::<K, V, _, _>(*map.parts(), self.session, prefix.as_ref(), ()) }
    }
}

impl<M: Sessions> Transaction<'_, '_, '_, M> {
    /// The keys that begin with these bytes and their values, in their order, from either end.
    ///
    /// # Panics
    ///
    /// If the map is one of another space.
    pub fn prefix<'r, K: Datum + ArtKey, V: Datum>(
        &'r self,
        map: &'r ArtMap<K, V, M>,
        prefix: impl AsRef<[u8]>,
    ) -> impl DoubleEndedIterator<Item = (&'r K, &'r V)> {
        check(self.domain, map.space().domain());
        let (session, reads) = (&*self.session, &self.reads);
        // SAFETY: a `Transaction` exists only while its session is open, which is a snapshot of the
        // map's domain. A change borrows the whole transaction, which the range has borrowed.
        unsafe { Art::prefix::<K, V, _, _>(*map.parts(), session, prefix.as_ref(), reads) }
    }
}
