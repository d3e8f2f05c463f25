//! Objects and maps without types: for the C library. Programs in Rust use [`Ptr`](crate::Ptr) and
//! [`Map`](crate::Map).

use super::catalog;
use super::operation::Registered;
use super::terms::Terms;
use super::ticket::Ticket;
use super::transaction::sealed::Objects;
use super::transaction::{Session, Stop, Transaction};
use super::trie::{Bytes, NODE_WORDS, Trie};
use super::{Member, Store, own};
use crate::error::Result;
use crate::heap::words::WORDS_MAX;

/// Bytes of the largest object.
pub const BYTES_MAX: usize = WORDS_MAX * 8;

/// A session's view of an object; `None` if there is no object at this offset.
pub fn object<S: Session>(session: &S, place: u64) -> Option<&[u64]> {
    let words = session.object_words(place)?;
    session.note(place, words);
    Some(session.object(place, words))
}

/// Locks an object to change it; `None` if there is no such object.
pub fn lock<'t>(
    tx: &'t mut Transaction<'_, '_>,
    place: u64,
) -> Result<Option<&'t mut [u64]>, Stop> {
    match tx.object_words(place) {
        Some(words) => tx.lock_words(place, words).map(Some),
        None => Ok(None),
    }
}

/// Locks an object that is not changed; returns whether there is one.
pub fn lock_const(tx: &mut Transaction<'_, '_>, place: u64) -> Result<bool, Stop> {
    match tx.object_words(place) {
        Some(words) => tx.lock_words_const(place, words).map(|()| true),
        None => Ok(false),
    }
}

/// A new object.
pub fn alloc(tx: &mut Transaction<'_, '_>, bytes: &[u8]) -> Result<u64, Stop> {
    own::mark(tx)?;
    let mut words = vec![0; bytes.len().div_ceil(8).max(1)];
    zerocopy::IntoBytes::as_mut_bytes(&mut *words)[..bytes.len()].copy_from_slice(bytes);
    tx.allocate(&words)
}

/// Frees the object at the commit; returns whether there is one.
///
/// # Safety
///
/// As of [`Transaction::free`].
pub unsafe fn free(tx: &mut Transaction<'_, '_>, place: u64) -> Result<bool, Stop> {
    match tx.object_words(place) {
        Some(words) => tx.free_words(place, words).map(|()| true),
        None => Ok(false),
    }
}

/// The object of this name. If it does not exist, it is created with zeros.
pub fn root(store: &Store, name: &str, bytes: usize) -> Result<u64> {
    let zeros = vec![0; bytes.div_ceil(8).max(1)];
    let schema = own::schema_of(&catalog::bytes_text(bytes));
    store.register()?.run(|tx| catalog::root(tx, name, &schema, &zeros))
}

/// As [`root`], in an operation: the object exists already.
pub fn find_root(tx: &Transaction<'_, '_>, name: &str, bytes: usize) -> Result<u64> {
    catalog::find_root(tx, name, &own::schema_of(&catalog::bytes_text(bytes)))
}

/// The result of [`Transaction::input`] as bytes: the given ones, or the original ones in a replay.
pub fn input(tx: &mut Transaction<'_, '_>, bytes: &mut [u8]) -> Result<(), Stop> {
    tx.input_bytes(bytes)
}

/// Calls an operation, which does what `run` does: see [`Member::submit_call`].
pub fn call<'s>(
    member: &mut Member<'s>,
    operation: &dyn Registered,
    arguments: &[u8],
    run: impl FnMut(&mut Transaction<'_, 's>) -> Result<(), Stop>,
) -> Result<Ticket<'s, ()>> {
    member.submit_bytes(Terms::default(), operation, arguments, run)
}

/// A map of bytes. In the files it is a `Map<[u8; K], [u8; V]>`.
#[derive(Clone, Copy)]
pub struct ByteMap(Trie<Bytes>);

impl ByteMap {
    /// The map of this name. If it does not exist, it is created.
    pub fn open(store: &Store, name: &str, key_bytes: usize, value_bytes: usize) -> Result<Self> {
        let schema = Self::schema(key_bytes, value_bytes);
        let mut member = store.register()?;
        let root = member.run(|tx| catalog::root(tx, name, &schema, &[0; NODE_WORDS]))?;
        let shape = Bytes { key: key_bytes, value: value_bytes };
        Ok(Self(Trie { root, seed: store.shared.seed, shape }))
    }

    /// As [`open`](Self::open), in an operation: the map exists already.
    pub fn find(
        tx: &Transaction<'_, '_>,
        name: &str,
        key_bytes: usize,
        value_bytes: usize,
    ) -> Result<Self> {
        let root = catalog::find_root(tx, name, &Self::schema(key_bytes, value_bytes))?;
        let shape = Bytes { key: key_bytes, value: value_bytes };
        Ok(Self(Trie { root, seed: tx.seed(), shape }))
    }

    fn schema(key_bytes: usize, value_bytes: usize) -> String {
        let [key, value] = [key_bytes, value_bytes].map(catalog::bytes_text);
        format!("a map from {key} to {value}")
    }

    /// Bytes of a key, and of a value.
    pub fn sizes(&self) -> (usize, usize) {
        (self.0.shape.key, self.0.shape.value)
    }

    /// The value of a key, which must have exactly this number of bytes.
    pub fn get<'s>(&self, session: &'s impl Session, key: &[u8]) -> Option<&'s [u8]> {
        // The leaf is the session's, and its value is behind its key.
        let leaf = self.0.get(session, key)?;
        Some(self.0.value(leaf))
    }

    /// Sets the value of a key.
    pub fn put(&self, tx: &mut Transaction<'_, '_>, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.0.insert(tx, key, value, |_| ())
    }

    /// Removes a key; returns whether it was there.
    pub fn remove(&self, tx: &mut Transaction<'_, '_>, key: &[u8]) -> Result<bool, Stop> {
        self.0.remove(tx, key, |_| ())
    }

    /// Visits all keys and values, in no order.
    pub fn for_each(&self, session: &impl Session, mut visit: impl FnMut(&[u8], &[u8])) {
        self.0.for_each(session, |leaf| visit(self.0.key(leaf), self.0.value(leaf)));
    }
}
