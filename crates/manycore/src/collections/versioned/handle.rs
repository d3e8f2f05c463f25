//! A thread's access to a map: one key at a time, snapshots, transactions.

use core::ops::{Bound, RangeBounds};

use super::{Arrangement, One, Placement, Shape, Versioned};
use crate::session::{self, Conflict, Open, RawSession, Sessions, View};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};

/// A thread's access to [`Versioned`].
pub struct Handle<'a, K: Copy, V: Copy, M: Sessions + 'a, P: Arrangement> {
    map: &'a Versioned<K, V, M, P>,
    session: M::Handle<'a>,
    /// The number of keys that this thread has inserted, less those that it has removed, without
    /// the ones that it has reported.
    more: isize,
}

impl<K: Copy, V: Copy, M: Sessions, P: Arrangement> Drop for Handle<'_, K, V, M, P> {
    fn drop(&mut self) {
        P::has_gone(&self.map.parts, self.more);
    }
}

/// A session that sees the whole map at one moment.
pub struct Reads<'s, K: Copy, V: Copy, M: Sessions, P: Arrangement, S> {
    map: &'s Versioned<K, V, M, P>,
    session: &'s S,
}

/// A transaction on any keys of the map.
pub struct Writes<'s, K: Copy, V: Copy, M: Sessions, P: Arrangement, S> {
    map: &'s Versioned<K, V, M, P>,
    session: &'s mut S,
    /// The number of keys that the transaction has inserted, less those that it has removed.
    more: isize,
}

opaque! {
    [K: Copy, V: Copy, M: Sessions, P: Arrangement] Handle<'_, K, V, M, P>, "Handle";
    [K: Copy, V: Copy, M: Sessions, P: Arrangement, S] Reads<'_, K, V, M, P, S>, "Reads";
    [K: Copy, V: Copy, M: Sessions, P: Arrangement, S] Writes<'_, K, V, M, P, S>, "Writes";
}

impl<K: Copy, V: Copy, M: Sessions, P: Placement<K>> Versioned<K, V, M, P> {
    fn new_handle(&self) -> Handle<'_, K, V, M, P> {
        Handle { map: self, session: self.domain.register(), more: 0 }
    }
}

impl<'a, K, V, M, P> Handle<'a, K, V, M, P>
where
    K: Copy + Ord,
    V: Copy,
    M: Sessions,
    P: Placement<K>,
{
    /// Reads any keys as they are at one moment.
    pub fn snapshot<R>(&mut self, f: impl FnOnce(&Reads<'_, K, V, M, P, M::Handle<'a>>) -> R) -> R {
        let open = Open::begin(&mut self.session, View::Snapshot);
        let result = f(&Reads { map: self.map, session: open.handle });
        open.end();
        result
    }

    /// Reads and changes any keys; other threads see all of the changes or none. The transaction
    /// runs again after each conflict, with growing pauses and without a limit. It also runs again
    /// if `f` does not return a conflict, because after a conflict a transaction can only abort.
    ///
    /// # Panics
    ///
    /// Under MV-RLU, if the transaction's writes fill a whole log: see
    /// [`Config::segments_max`](crate::mvrlu::Config::segments_max).
    pub fn transact<R>(
        &mut self,
        mut f: impl FnMut(&mut Writes<'_, K, V, M, P, M::Handle<'a>>) -> Result<R, Conflict>,
    ) -> R {
        let map = self.map;
        let (result, more) = session::retry(&mut self.session, View::Snapshot, |session| {
            let mut writes = Writes { map, session, more: 0 };
            let result = f(&mut writes)?;
            Ok((result, writes.more))
        });
        self.has_changed(more);
        result
    }

    /// A commit has inserted this many keys more than it has removed.
    #[inline]
    fn has_changed(&mut self, more: isize) {
        self.more += more;
        // SAFETY: the callers' session has ended, and the handle's domain is the map's.
        unsafe { P::has_changed(&self.map.parts, &mut self.session, &mut self.more) };
    }

    #[inline]
    fn look_up(&mut self, key: &K) -> Option<V> {
        let open = Open::begin(&mut self.session, P::VIEW);
        // SAFETY: `open` has begun the session, on a handle of the map's domain, by the view that
        // the parts ask for.
        let value = unsafe { P::get(&self.map.parts, &*open.handle, key) };
        open.end();
        value
    }

    #[inline]
    fn put(&mut self, key: K, value: V, keep: bool) -> Option<V> {
        let parts = &self.map.parts;
        let old = session::retry(&mut self.session, P::VIEW, |session| {
            // SAFETY: `retry` has begun the session, on a handle of the map's domain, by the view
            // that the parts ask for.
            unsafe { P::insert(parts, session, key, value, keep) }
        });
        if old.is_none() {
            self.has_changed(1);
        }
        old
    }

    #[inline]
    fn take(&mut self, key: &K) -> Option<V> {
        let parts = &self.map.parts;
        let old = session::retry(&mut self.session, P::VIEW, |session| {
            // SAFETY: `retry` has begun the session, on a handle of the map's domain, by the view
            // that the parts ask for.
            unsafe { P::remove(parts, session, key) }
        });
        if old.is_some() {
            self.has_changed(-1);
        }
        old
    }
}

impl<K, V, M, P, S> Reads<'_, K, V, M, P, S>
where
    K: Copy + Ord,
    V: Copy,
    M: Sessions,
    P: Placement<K>,
    S: RawSession,
{
    /// The key's value.
    pub fn get(&self, key: &K) -> Option<V> {
        // SAFETY: `Reads` exists only while its session is open, which is a snapshot of the map's
        // domain.
        unsafe { P::get(&self.map.parts, self.session, key) }
    }

    /// Calls `f` with every entry, part by part.
    pub fn for_each(&self, f: impl FnMut(&K, &V)) {
        // SAFETY: `Reads` exists only while its session is open, which is a snapshot of the map's
        // domain.
        unsafe { P::for_each(&self.map.parts, self.session, f) };
    }
}

impl<K: Copy + Ord, V: Copy, M: Sessions, F: Shape, S: RawSession> Reads<'_, K, V, M, One<F>, S> {
    /// Calls `f` with the entries of a range, in the order of their keys.
    pub fn range(&self, range: impl RangeBounds<K>, mut f: impl FnMut(&K, &V)) {
        let from = match range.start_bound() {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let is_over = |key: &K| match range.end_bound() {
            Bound::Included(end) => key > end,
            Bound::Excluded(end) => key >= end,
            Bound::Unbounded => false,
        };
        let visit = |key: &K, value: &V| {
            if range.contains(key) {
                f(key, value);
            }
            !is_over(key)
        };
        // SAFETY: a `Reads` exists only while its session is open, which is a snapshot of the map's
        // domain; the map's one part is of this shape.
        unsafe { F::visit(self.session, self.map.parts, from, visit) };
    }
}

impl<K, V, M, P, S> Writes<'_, K, V, M, P, S>
where
    K: Copy + Ord,
    V: Copy,
    M: Sessions,
    P: Placement<K>,
    S: RawSession,
{
    /// Executes an operation. If it fails, or panics halfway, for example in a key's `Ord`, the
    /// session can only abort.
    #[inline]
    fn whole<R>(
        &mut self,
        operation: impl FnOnce(&mut S) -> Result<R, Conflict>,
    ) -> Result<R, Conflict> {
        // SAFETY: `Writes` is there only while its session is open.
        unsafe { session::whole(&mut *self.session, operation) }
    }

    /// The key's value, as it was when the transaction began or as the transaction has changed it.
    pub fn get(&self, key: &K) -> Option<V> {
        // SAFETY: `Writes` exists only while its session is open, which is a snapshot of the map's
        // domain.
        unsafe { P::get(&self.map.parts, &*self.session, key) }
    }

    /// Gives the key a value; returns the key's old value.
    ///
    /// # Errors
    ///
    /// If another thread changes the same position. The transaction can then only abort, so end it,
    /// for example by `?`. If the key's `Ord` or `Hash` panics, and the panic is caught in the
    /// transaction, the transaction can only abort, too.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, Conflict> {
        let parts = &self.map.parts;
        // SAFETY: `Writes` exists only while its session is open, which is a snapshot of the map's
        // domain.
        let old = self.whole(|session| unsafe { P::insert(parts, session, key, value, false) })?;
        self.more += isize::from(old.is_none());
        Ok(old)
    }

    /// Takes the key out; returns its value.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn remove(&mut self, key: &K) -> Result<Option<V>, Conflict> {
        let parts = &self.map.parts;
        // SAFETY: `Writes` exists only while its session is open, which is a snapshot of the map's
        // domain.
        let old = self.whole(|session| unsafe { P::remove(parts, session, key) })?;
        self.more -= isize::from(old.is_some());
        Ok(old)
    }
}

impl<K, M, P> ConcurrentSet<K> for Versioned<K, (), M, P>
where
    K: Copy + Ord + Send + Sync,
    M: Sessions,
    P: Placement<K>,
{
    type Handle<'a>
        = Handle<'a, K, (), M, P>
    where
        Self: 'a;

    fn handle(&self) -> Handle<'_, K, (), M, P> {
        self.new_handle()
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K, M, P> SetHandle<K> for Handle<'_, K, (), M, P>
where
    K: Copy + Ord,
    M: Sessions,
    P: Placement<K>,
{
    #[inline]
    fn contains(&mut self, key: &K) -> bool {
        self.look_up(key).is_some()
    }

    #[inline]
    fn insert(&mut self, key: K) -> bool {
        self.put(key, (), true).is_none()
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.take(key).is_some()
    }
}

impl<K, V, M, P> ConcurrentMap<K, V> for Versioned<K, V, M, P>
where
    K: Copy + Ord + Send + Sync,
    V: Copy + Send + Sync,
    M: Sessions,
    P: Placement<K>,
{
    type Handle<'a>
        = Handle<'a, K, V, M, P>
    where
        Self: 'a;

    fn handle(&self) -> Handle<'_, K, V, M, P> {
        self.new_handle()
    }
}

impl<K, V, M, P> MapHandle<K, V> for Handle<'_, K, V, M, P>
where
    K: Copy + Ord,
    V: Copy,
    M: Sessions,
    P: Placement<K>,
{
    #[inline]
    fn get(&mut self, key: &K) -> Option<V> {
        self.look_up(key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.put(key, value, false)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        self.take(key)
    }
}
