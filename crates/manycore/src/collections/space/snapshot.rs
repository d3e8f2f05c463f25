//! A session that sees collections at one moment.

use core::borrow::Borrow;
use core::ops::RangeBounds;
use core::ptr::NonNull;

use super::identity::check;
use super::map::Map;
use crate::collections::versioned::{Datum, Ordered, Seek, Structure};
use crate::session::Sessions;

/// Collections of a space as they are at one moment. References to values are valid as long as the
/// snapshot exists:
///
/// ```compile_fail
/// # use manycore::collections::space::BTreeMap;
/// let names = BTreeMap::<u64, String>::default();
/// names.set(1, "one".into());
/// let kept = names.space().snapshot(|now| now.get(&names, &1));
/// ```
///
/// ```
/// # use manycore::collections::space::BTreeMap;
/// # let names = BTreeMap::<u64, String>::default();
/// # names.set(1, "one".into());
/// let cloned = names.space().snapshot(|now| now.get(&names, &1).cloned());
/// assert_eq!(cloned.as_deref(), Some("one"));
/// ```
pub struct Snapshot<'t, 's, M: Sessions + 'static> {
    pub(super) session: &'t M::Handle<'s>,
    pub(super) domain: NonNull<M>,
}

impl<M: Sessions> Snapshot<'_, '_, M> {
    /// The key's value.
    ///
    /// # Panics
    ///
    /// If the map is one of another space: so do all methods.
    pub fn get<'r, K, V, P, Q>(&'r self, map: &'r Map<K, V, P, M>, key: &Q) -> Option<&'r V>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.get_key_value(map, key).map(|(_, value)| value)
    }

    /// The key as it is in the map, and its value.
    pub fn get_key_value<'r, K, V, P, Q>(
        &'r self,
        map: &'r Map<K, V, P, M>,
        key: &Q,
    ) -> Option<(&'r K, &'r V)>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        check(self.domain, map.space().domain());
        // SAFETY: a `Snapshot` exists only while its session is open, which is one of the map's
        // domain. Objects that it has found stay until its end.
        unsafe {
            let (key, value) = P::find(map.parts(), self.session, key, &())?;
            Some((key.get(), value.get()))
        }
    }

    /// Whether the key is there.
    pub fn contains_key<K, V, P, Q>(&self, map: &Map<K, V, P, M>, key: &Q) -> bool
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.get(map, key).is_some()
    }

    /// Calls `f` with every key and value, until it returns false.
    pub fn for_each<'r, K, V, P>(
        &'r self,
        map: &'r Map<K, V, P, M>,
        mut f: impl FnMut(&'r K, &'r V) -> bool,
    ) where
        K: Datum,
        V: Datum,
        P: Structure,
    {
        check(self.domain, map.space().domain());
        // SAFETY: a `Snapshot` exists only while its session is open, which is one of the map's
        // domain. Objects that it has found stay until its end.
        unsafe { P::for_each(map.parts(), self.session, |key, value| f(key.get(), value.get())) };
    }

    /// The number of keys. They are counted, which takes some nanoseconds for each.
    pub fn len<K: Datum, V: Datum, P: Structure>(&self, map: &Map<K, V, P, M>) -> usize {
        let mut keys = 0;
        self.for_each(map, |_, _| {
            keys += 1;
            true
        });
        keys
    }

    /// Whether there is no key.
    pub fn is_empty<K: Datum, V: Datum, P: Structure>(&self, map: &Map<K, V, P, M>) -> bool {
        let mut is_empty = true;
        self.for_each(map, |_, _| {
            is_empty = false;
            false
        });
        is_empty
    }

    /// The keys of a range with their values, in their order, from either end.
    ///
    /// # Panics
    ///
    /// If the range begins after its end, as of the standard library's map.
    pub fn range<'r, K, V, P, Q, R>(
        &'r self,
        map: &'r Map<K, V, P, M>,
        range: R,
    ) -> impl DoubleEndedIterator<Item = (&'r K, &'r V)>
    where
        K: Datum + Borrow<Q>,
        V: Datum,
        P: Ordered<K, Q>,
        Q: ?Sized,
        R: RangeBounds<Q>,
    {
        check(self.domain, map.space().domain());
        // SAFETY: a `Snapshot` exists only while its session is open, which is one of the map's
        // domain, and changes nothing.
        unsafe { P::range(map.parts(), self.session, &range, ()) }
    }

    /// All keys with their values, in their order, from either end.
    pub fn iter<'r, K, V, P>(
        &'r self,
        map: &'r Map<K, V, P, M>,
    ) -> impl DoubleEndedIterator<Item = (&'r K, &'r V)>
    where
        K: Datum,
        V: Datum,
        P: Ordered<K, K>,
    {
        self.range::<K, V, P, K, _>(map, ..)
    }

    /// The smallest key and its value.
    pub fn first<'r, K: Datum, V: Datum, P: Ordered<K, K>>(
        &'r self,
        map: &'r Map<K, V, P, M>,
    ) -> Option<(&'r K, &'r V)> {
        self.iter(map).next()
    }

    /// The largest key and its value.
    pub fn last<'r, K: Datum, V: Datum, P: Ordered<K, K>>(
        &'r self,
        map: &'r Map<K, V, P, M>,
    ) -> Option<(&'r K, &'r V)> {
        self.iter(map).next_back()
    }
}

opaque! { [M: Sessions] Snapshot<'_, '_, M>, "Snapshot"; }
