//! A session that reads and changes collections.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cell::RefCell;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use core::ptr::NonNull;

use super::identity::check;
use super::map::Map;
use super::pending::Pending;
use crate::collections::versioned::{Change, Datum, Observe, Ordered, Seek, Word};
use crate::session::{self, Conflict, Link, RawSession, Sessions};

/// A transaction on collections of a space. It sees them as they were when it began, with its own
/// changes.
///
/// After a conflict it can only abort: return the conflict, by `?`. If the function returns
/// something else, the transaction still runs again.
pub struct Transaction<'t, 's, 'm, M: Sessions + 'static> {
    pub(super) session: &'t mut M::Handle<'s>,
    pub(super) domain: NonNull<M>,
    /// Maps that have to be told how many keys they have gained.
    changed: Vec<Changed<'m, M::Handle<'s>>>,
    pub(super) reads: Reads<M::Handle<'s>>,
}

/// A map that has to be told, after a commit, how many keys it has gained.
pub(super) struct Changed<'m, S> {
    /// A pointer to the parts of a map that exists for `'m`.
    parts: *const (),
    tell: unsafe fn(*const (), &mut S, isize),
    more: isize,
    _map: PhantomData<&'m ()>,
}

impl<S> Changed<'_, S> {
    /// Tells the map.
    ///
    /// # Safety
    ///
    /// The caller is in no session, and has a handle of the map's domain.
    pub unsafe fn tell(&self, handle: &mut S) {
        // SAFETY: the function was made for a map with these parts, which still exists; the rest is
        // the contract of this function.
        unsafe { (self.tell)(self.parts, handle, self.more) };
    }
}

/// # Safety
///
/// As of [`Seek::has_changed`], for parts of these types.
unsafe fn tell<K, V, P, Q, S>(parts: *const (), handle: &mut S, more: isize)
where
    K: Datum,
    V: Datum,
    P: Seek<K, Q>,
    Q: ?Sized,
    S: RawSession,
{
    // SAFETY: `parts` leads to parts of these types, and the handle is in no session (contract of
    // this function, that of `has_changed`).
    unsafe { P::has_changed(&*parts.cast::<P::Parts<K, V>>(), handle, more) };
}

/// The positions that were read, if they have to be unchanged when the transaction commits.
pub(super) struct Reads<S>(Option<RefCell<Vec<Read<S>>>>);

struct Read<S> {
    link: Link<()>,
    lock: unsafe fn(&mut S, Link<()>) -> Result<(), Conflict>,
}

/// # Safety
///
/// As of [`RawSession::try_lock_const`], for an object of this type.
unsafe fn lock<S: RawSession, T: Copy>(session: &mut S, link: Link<()>) -> Result<(), Conflict> {
    // SAFETY: the session is open and has found the object, which is a `T` (contract of this
    // function, that of `try_lock_const`).
    unsafe { session.try_lock_const(Link::<T>::from_ptr(link.as_ptr())) }
}

impl<S: RawSession> Observe<S> for Reads<S> {
    fn is_interested(&self) -> bool {
        self.0.is_some()
    }

    fn observe<T: Copy + 'static>(&self, link: Link<T>) {
        if let Some(reads) = &self.0 {
            let link = Link::from_ptr(link.as_ptr());
            reads.borrow_mut().push(Read { link, lock: lock::<S, T> });
        }
    }
}

impl<'t, 's, 'm, M: Sessions + 'static> Transaction<'t, 's, 'm, M> {
    pub(super) fn new(
        session: &'t mut M::Handle<'s>,
        domain: NonNull<M>,
        is_serializable: bool,
    ) -> Self {
        let reads = Reads(is_serializable.then(RefCell::default));
        Self { session, domain, changed: Vec::new(), reads }
    }

    /// Locks everything that was read, if the transaction asks for it. Returns the maps that have
    /// to be told, after the commit, how many keys they have gained.
    pub(super) fn end(self) -> Result<Vec<Changed<'m, M::Handle<'s>>>, Conflict> {
        for Read { link, lock } in self.reads.0.into_iter().flat_map(RefCell::into_inner) {
            // SAFETY: the session is open, and has found the object, which has the type for which
            // the function was made.
            match unsafe { lock(self.session, link) } {
                // What this transaction has taken out itself.
                Ok(()) | Err(Conflict::Freed) => {}
                Err(conflict) => return Err(conflict),
            }
        }
        Ok(self.changed)
    }

    fn has_changed<K, V, P, Q>(&mut self, map: &'m Map<K, V, P, M>, more: isize)
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        if !P::COUNTS || more == 0 {
            return;
        }
        let parts = core::ptr::from_ref(map.parts()).cast();
        match self.changed.iter_mut().find(|known| known.parts == parts) {
            Some(known) => known.more += more,
            None => {
                let tell = tell::<K, V, P, Q, M::Handle<'s>>;
                self.changed.push(Changed { parts, tell, more, _map: PhantomData });
            }
        }
    }

    fn change<K, V, P, Q, R>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: &Q,
        make: impl FnOnce(&mut M::Handle<'s>) -> Word<K>,
        f: impl FnOnce(&mut M::Handle<'s>, Option<&V>) -> (Change<V>, R),
    ) -> Result<R, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        check(self.domain, map.space().domain());
        let (parts, reads) = (map.parts(), &self.reads);
        // SAFETY: a `Transaction` exists only while its session is open, which is a snapshot of the
        // map's domain, and is aborted if this fails or panics.
        let (result, more) = unsafe {
            session::whole(&mut *self.session, |session| {
                P::change(parts, session, key, reads, make, f)
            })
        }?;
        self.has_changed::<K, V, P, Q>(map, more);
        Ok(result)
    }

    /// Does the same with a new key, which is dropped if it is not needed.
    fn change_or_add<K, V, P, R>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: K,
        f: impl FnOnce(&mut M::Handle<'s>, Option<&V>) -> (Change<V>, R),
    ) -> Result<R, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, K>,
    {
        let key = Pending::new(key);
        // SAFETY: the session is open. If it commits, the key is in a node: `make` is called once,
        // to link it, and if that fails the session aborts.
        let make = |session: &mut M::Handle<'s>| unsafe { key.claimed(session) };
        // SAFETY: the key does not move until `make` is called, and after that this function does
        // not read it.
        self.change(map, unsafe { &*key.get() }, make, f)
    }

    /// The key's value, as it was when the transaction began or as the transaction has changed it.
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
        check(self.domain, map.space().domain());
        // SAFETY: a `Transaction` exists only while its session is open, which is a snapshot of the
        // map's domain. Objects that it has found stay until its end or its next change, and a
        // change borrows the whole transaction.
        unsafe {
            let (_, value) = P::find(map.parts(), &*self.session, key, &self.reads)?;
            Some(value.get())
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
        // SAFETY: a `Transaction` exists only while its session is open, which is a snapshot of the
        // map's domain. A change borrows the whole transaction, which the range has borrowed.
        unsafe { P::range(map.parts(), &*self.session, &range, &self.reads) }
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

    /// Gives the key a value; returns the key's old value.
    ///
    /// # Errors
    ///
    /// If another thread changes the same leaf or bucket. The transaction can then only abort, so
    /// end it, for example by `?`. The same holds for all methods that change something.
    pub fn insert<K, V, P>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: K,
        value: V,
    ) -> Result<Option<V>, Conflict>
    where
        K: Datum,
        V: Datum + Clone,
        P: Seek<K, K>,
    {
        self.change_or_add(map, key, |session, old| {
            let old = old.cloned();
            // SAFETY: the session is open, and has the value in a node if it commits.
            (Change::Put(unsafe { Word::claimed(session, value) }), old)
        })
    }

    /// Gives the key a value; returns whether it had one.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn set<K, V, P>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: K,
        value: V,
    ) -> Result<bool, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, K>,
    {
        self.change_or_add(map, key, |session, old| {
            // SAFETY: the session is open, and has the value in a node if it commits.
            (Change::Put(unsafe { Word::claimed(session, value) }), old.is_some())
        })
    }

    /// Gives the key a value if it has none; returns whether it had none.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn insert_new<K, V, P>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: K,
        value: V,
    ) -> Result<bool, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, K>,
    {
        self.change_or_add(map, key, |session, old| match old {
            Some(_) => (Change::Keep, false),
            // SAFETY: the session is open, and has the value in a node if it commits.
            None => (Change::Put(unsafe { Word::claimed(session, value) }), true),
        })
    }

    /// Takes the key out; returns its value.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn remove<K, V, P, Q>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: &Q,
    ) -> Result<Option<V>, Conflict>
    where
        K: Datum,
        V: Datum + Clone,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change(
            map,
            key,
            |_| unreachable!("nothing is put in"),
            |_, old| (Change::Remove, old.cloned()),
        )
    }

    /// Takes the key out; returns whether it was there.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn delete<K, V, P, Q>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: &Q,
    ) -> Result<bool, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change(
            map,
            key,
            |_| unreachable!("nothing is put in"),
            |_, old| (Change::Remove, old.is_some()),
        )
    }

    /// Replaces the key's value by one computed from it; returns whether the key was there.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    pub fn update<K, V, P, Q>(
        &mut self,
        map: &'m Map<K, V, P, M>,
        key: &Q,
        f: impl FnOnce(&V) -> V,
    ) -> Result<bool, Conflict>
    where
        K: Datum,
        V: Datum,
        P: Seek<K, Q>,
        Q: ?Sized,
    {
        self.change(
            map,
            key,
            |_| unreachable!("nothing is put in"),
            |session, old| match old {
                // SAFETY: the session is open, and has the value in a node if it commits.
                Some(old) => (Change::Put(unsafe { Word::claimed(session, f(old)) }), true),
                None => (Change::Keep, false),
            },
        )
    }
}

opaque! { [M: Sessions] Transaction<'_, '_, '_, M>, "Transaction"; }
