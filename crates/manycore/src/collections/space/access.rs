//! Access to a map by a thread's handle: one key at a time.

use alloc::vec::Vec;
use core::cell::OnceCell;

use super::entry::Entry;
use super::handle::Handle;
use super::map::Map;
use super::pending::Pending;
use crate::collections::versioned::{Change, Datum, Seek, Structure, Word};
use crate::session::{self, Open, RawSession, Sessions};

/// A map by a thread's handle: see [`Map::by`].
pub struct Access<'a, 's, K: Datum, V: Datum, P: Structure, M: Sessions + 'static> {
    map: &'a Map<K, V, P, M>,
    me: &'a mut Handle<'s, M>,
}

impl<K: Datum, V: Datum, P: Structure, M: Sessions> Map<K, V, P, M> {
    /// The same map, by a thread's own handle.
    ///
    /// ```
    /// use manycore::collections::space::{BTreeMap, Space};
    ///
    /// let space = <Space>::default();
    /// let squares = BTreeMap::<u64, u64>::new_in(&space);
    /// let mut me = space.handle();
    /// (0..100).for_each(|n| drop(squares.by(&mut me).insert(n, n * n)));
    /// assert_eq!(squares.by(&mut me).get(&7), Some(49));
    /// ```
    ///
    /// # Panics
    ///
    /// If the handle is one of another space.
    #[inline]
    pub fn by<'a, 's>(&'a self, me: &'a mut Handle<'s, M>) -> Access<'a, 's, K, V, P, M> {
        me.check(self.space().domain());
        me.raw.end_dying();
        Access { map: self, me }
    }
}

impl<'s, K: Datum, V: Datum, P: Structure, M: Sessions> Access<'_, 's, K, V, P, M> {
    /// Applies `f`'s decision to the key's entry, in as many attempts as necessary. Also returns by
    /// how many the number of keys has grown.
    #[inline]
    fn change<Q, R>(
        &mut self,
        key: impl Fn() -> *const Q,
        make: impl Fn(&mut M::Handle<'s>) -> Word<K>,
        mut f: impl FnMut(&mut M::Handle<'s>, Option<&V>) -> (Change<V>, R),
    ) -> (R, isize)
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        let parts = self.map.parts();
        // SAFETY: `retry` has begun the session, on a handle of the map's space, by the view that
        // the structure asks for, and aborts it if this fails. The key does not move at least until
        // `make` is called.
        let (result, more) = session::retry(&mut self.me.raw, P::VIEW, |session| unsafe {
            P::change(parts, session, &*key(), &(), &make, &mut f)
        });
        (result, more)
    }

    /// A commit has inserted this many keys more than it has removed. Reporting that may call
    /// `Hash`, which may panic, so everything else comes first.
    #[inline]
    fn has_changed<Q>(&mut self, more: isize)
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        if P::COUNTS && more != 0 {
            // SAFETY: callers' sessions have ended, and `by` has checked that the handle is one of
            // the map's space.
            unsafe { P::has_changed(self.map.parts(), &mut self.me.raw, more) };
        }
    }

    /// Does the same with a new key. Also returns whether the map has the key now: see
    /// [`settle`](Self::settle).
    #[inline]
    fn change_or_add<R>(
        &mut self,
        key: &Pending<K>,
        f: impl FnMut(&mut M::Handle<'s>, Option<&V>) -> (Change<V>, R),
    ) -> (R, bool)
    where
        P: Seek<K, K>,
    {
        let (result, more) = self.change(|| key.get(), |session| key.word(session), f);
        (result, more == 1)
    }

    /// Settles a new key: if the map does not have it, it is dropped. Settle the value first, since
    /// a destructor may panic.
    fn settle_key(&mut self, key: Pending<K>, is_new: bool)
    where
        P: Seek<K, K>,
    {
        self.settle(key, is_new);
        self.has_changed::<K>(isize::from(is_new));
    }

    /// Settles a key or a value: if the map does not have it, it is dropped.
    fn settle<T: Datum>(&mut self, pending: Pending<T>, is_in_map: bool) {
        if is_in_map {
            pending.release();
        } else {
            pending.end(&mut self.me.raw);
        }
    }

    /// What is there is changed, and nothing put in.
    #[inline]
    fn change_known<Q, R>(
        &mut self,
        key: &Q,
        f: impl FnMut(&mut M::Handle<'s>, Option<&V>) -> (Change<V>, R),
    ) -> R
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        let (result, more) = self.change(|| key, |_| unreachable!("nothing is put in"), f);
        self.has_changed::<Q>(more);
        result
    }
}

impl<K: Datum, V: Datum, P: Structure, M: Sessions> Access<'_, '_, K, V, P, M> {
    /// Calls a function with the key and its value, in a session, and returns its result.
    #[inline]
    pub fn get_key_value_with<Q, R>(&mut self, key: &Q, f: impl FnOnce(&K, &V) -> R) -> Option<R>
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        let open = Open::begin(&mut self.me.raw, P::VIEW);
        // SAFETY: `open` has begun the session, on a handle of the map's space, by the view that
        // the structure asks for; objects that it has found stay until its end.
        let result = unsafe {
            let found = P::find(self.map.parts(), &*open.handle, key, &());
            found.map(|(key, value)| f(key.get(), value.get()))
        };
        open.end();
        result
    }

    /// Calls a function with the key's value, in a session, and returns its result.
    #[inline]
    pub fn get_with<Q, R>(&mut self, key: &Q, f: impl FnOnce(&V) -> R) -> Option<R>
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.get_key_value_with(key, |_, value| f(value))
    }

    /// A clone of the key's value.
    #[inline]
    pub fn get<Q>(&mut self, key: &Q) -> Option<V>
    where
        V: Clone,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.get_with(key, V::clone)
    }

    /// Whether the key is there.
    #[inline]
    pub fn contains_key<Q>(&mut self, key: &Q) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.get_with(key, |_| ()).is_some()
    }

    /// Gives the key a value; returns a clone of the key's old value.
    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V>
    where
        V: Clone,
        P: Seek<K, K>,
    {
        self.put(key, value, |old| old.cloned())
    }

    /// Gives the key a value; returns whether it had one.
    #[inline]
    pub fn set(&mut self, key: K, value: V) -> bool
    where
        P: Seek<K, K>,
    {
        self.put(key, value, |old| old.is_some())
    }

    fn put<R>(&mut self, key: K, value: V, of_old: impl Fn(Option<&V>) -> R) -> R
    where
        P: Seek<K, K>,
    {
        let (key, value) = (Pending::new(key), Pending::new(value));
        let (result, is_new) = self
            .change_or_add(&key, |session, old| (Change::Put(value.word(session)), of_old(old)));
        value.release();
        self.settle_key(key, is_new);
        result
    }

    /// Gives the key a value if it has none; returns whether it had none.
    #[inline]
    pub fn insert_new(&mut self, key: K, value: V) -> bool
    where
        P: Seek<K, K>,
    {
        let (key, value) = (Pending::new(key), Pending::new(value));
        let ((), is_new) = self.change_or_add(&key, |session, old| match old {
            Some(_) => (Change::Keep, ()),
            None => (Change::Put(value.word(session)), ()),
        });
        if is_new {
            value.release();
        } else {
            self.settle(value, false);
        }
        self.settle_key(key, is_new);
        is_new
    }

    /// A clone of the key's value. If it has none, a new value is made; it is dropped if another
    /// thread inserts first.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> V
    where
        V: Clone,
        P: Seek<K, K>,
    {
        let (mut make, made) = (Some(make), OnceCell::new());
        let key = Pending::new(key);
        let (result, is_new) = self.change_or_add(&key, |session, old| match old {
            Some(old) => (Change::Keep, old.clone()),
            None => {
                let value = made.get_or_init(|| {
                    Pending::new(make.take().expect("what is made once is kept")())
                });
                let word = value.word(session);
                // SAFETY: the word belongs to this call as long as no commit has linked it.
                (Change::Put(word), unsafe { word.get() }.clone())
            }
        });
        let made: Option<Pending<V>> = made.into_inner();
        if let Some(value) = made {
            self.settle(value, is_new);
        }
        self.settle_key(key, is_new);
        result
    }

    /// Removes the key; returns a clone of its value.
    #[inline]
    pub fn remove<Q>(&mut self, key: &Q) -> Option<V>
    where
        V: Clone,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change_known(key, |_, old| (Change::Remove, old.cloned()))
    }

    /// Takes the key out; returns whether it was there.
    #[inline]
    pub fn delete<Q>(&mut self, key: &Q) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change_known(key, |_, old| (Change::Remove, old.is_some()))
    }

    /// Removes the key if the function returns true for its value; returns whether it did. The
    /// function is called again if another thread changes the key first.
    pub fn remove_if<Q>(&mut self, key: &Q, mut is: impl FnMut(&V) -> bool) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change_known(key, |_, old| match old {
            Some(old) if is(old) => (Change::Remove, true),
            _ => (Change::Keep, false),
        })
    }

    /// Replaces the key's value by one computed from it; returns whether the key was there. The
    /// function is called again if another thread changes the key first.
    pub fn update<Q>(&mut self, key: &Q, mut f: impl FnMut(&V) -> V) -> bool
    where
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change_known(key, |session, old| match old {
            // SAFETY: the session is open, and has the value in a node if it commits.
            Some(old) => (Change::Put(unsafe { Word::claimed(session, f(old)) }), true),
            None => (Change::Keep, false),
        })
    }

    /// Does the same, and gives a value to a key that has none.
    pub fn update_or_insert(&mut self, key: K, mut f: impl FnMut(Option<&V>) -> V)
    where
        P: Seek<K, K>,
    {
        let key = Pending::new(key);
        let ((), is_new) = self.change_or_add(&key, |session, old| {
            // SAFETY: the session is open, and has the value in a node if it commits.
            (Change::Put(unsafe { Word::claimed(session, f(old)) }), ())
        });
        self.settle_key(key, is_new);
    }

    /// An entry for the key, whether or not it is in the map; the next call decides what happens to
    /// it. See [`Map::entry`].
    pub fn entry(&mut self, key: K) -> Entry<&mut Self>
    where
        P: Seek<K, K>,
    {
        Entry::new(self, key)
    }

    /// Gives the key another value if it has this one.
    ///
    /// # Errors
    ///
    /// A clone of the present value, or none if the key is missing; and the new value, which was
    /// not stored.
    pub fn compare_exchange<Q>(&mut self, key: &Q, old: &V, new: V) -> Result<(), (Option<V>, V)>
    where
        V: Clone + PartialEq,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        let new = Pending::new(new);
        let result = self.change_known(key, |session, now| match now {
            Some(now) if now == old => (Change::Put(new.word(session)), Ok(())),
            now => (Change::Keep, Err(now.cloned())),
        });
        match result {
            Ok(()) => {
                new.release();
                Ok(())
            }
            Err(now) => Err((now, new.take(&mut self.me.raw))),
        }
    }

    /// Removes every key for which the function returns false. This is not one atomic step, but one
    /// for each key; keys that are inserted meanwhile may stay without a call of the function. The
    /// function may see a key twice, and runs in a session.
    pub fn retain(&mut self, mut stays: impl FnMut(&K, &V) -> bool)
    where
        K: Clone,
        P: Seek<K, K>,
    {
        let map = self.map;
        let mut out = Vec::new();
        self.me.snapshot(|now| {
            now.for_each(map, |key, value| {
                if !stays(key, value) {
                    out.push(key.clone());
                }
                true
            });
        });
        out.iter().for_each(|key| _ = self.remove_if(key, |value| !stays(key, value)));
    }

    /// Removes all present keys. This is not one atomic step, but one for each key.
    pub fn clear(&mut self)
    where
        K: Clone,
        P: Seek<K, K>,
    {
        self.retain(|_, _| false);
    }

    /// The number of keys at one moment. They are counted, which takes some nanoseconds for each.
    pub fn len(&mut self) -> usize {
        let map = self.map;
        self.me.snapshot(|now| now.len(map))
    }

    /// Whether there is no key.
    pub fn is_empty(&mut self) -> bool {
        let map = self.map;
        self.me.snapshot(|now| now.is_empty(map))
    }
}

opaque! { [K: Datum, V: Datum, P: Structure, M: Sessions] Access<'_, '_, K, V, P, M>, "Access"; }
