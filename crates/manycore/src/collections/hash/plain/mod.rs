//! [`PlainHashMap`]: a hash table for plain data, which is in the buckets themselves.
//!
//! # Idea
//!
//! A number, an array of numbers, or a structure without padding is nothing but its bytes. So an
//! entry needs no memory of its own: a bucket has six or seven entries, with a byte of the hash of
//! each. A look-up of a one-word key reads one cache line or two adjacent ones. A new value is
//! written over the old one. An insertion allocates nothing, and only a table that has become too
//! small waits for a grace period.
//!
//! A reader takes no lock. It may read an entry while another thread writes it; then it notices
//! that by the bucket's version, and reads again. The version grows before a slot is used again,
//! and is odd while a value of more than a word is replaced. So a reader waits only for that write,
//! of some nanoseconds. A writer locks the bucket by a bit of its first word, as in
//! [`HashMap`](super::HashMap), and grows in the same steps.
//!
//! # Source
//!
//! The version is a sequence lock: the protocol, with its fences, is that of H.-J. Boehm, "Can
//! seqlocks get along with programming language memory models?", MSPC 2012. The rest as for
//! [`map`](super::map).
//!
//! # Memory order
//!
//! *A slot is used again.* A writer removes the tag (Release of the word). Later the same or
//! another writer increases the version (Release), and then writes the slot after a Release fence.
//! A reader reads the version (Acquire), the word (Acquire), the slot, and after an Acquire fence
//! the version once more. If it has read a byte of the new entry, the fences show it the new
//! version. If it had read the new version at the start, it also knows that the old tag was
//! removed. Then it has not read the slot before the new tag was there, which is stored by a
//! Release of its own.
//!
//! *Absent* is right for the moment at which the bucket's word was read, or for a later one: see
//! [`map`](super::map).
//!
//! # Cost
//!
//! Seven entries of two words each and their state take 136 bytes, and six of one word 72; with the
//! growth by doubling that is 28 to 56 bytes an entry, and 17 to 34.
//!
//! # When not to use it
//!
//! For keys and values that own memory, such as a `String`, or that have interior mutability, such
//! as an atomic: they are not plain data. For values of some hundred bytes, since each read copies
//! the value.

mod bucket;
mod handle;
mod iter;
mod words;

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

pub use bytemuck::NoUninit;
use foldhash::fast::RandomState;

use super::table::{Tables, Writing};
use super::word::tag;
use crate::reclaim::{Config, Domain, Guard};
use bucket::{Found, Inline};
pub use handle::PlainHashMapHandle;
pub use iter::PlainIter;

/// A concurrent hash map of plain data. See the [module](self).
///
/// ```
/// use manycore::collections::PlainHashMap;
///
/// let hits = PlainHashMap::<u64, u64>::new();
/// hits.update_or_insert(17, |count| count.unwrap_or(0) + 1);
/// hits.update_or_insert(17, |count| count.unwrap_or(0) + 1);
/// assert_eq!(hits.get(&17), Some(2));
///
/// let handle = hits.handle(); // for many operations of one thread
/// assert_eq!(handle.insert(4, 1), None);
/// assert_eq!(handle.iter().count(), 2);
/// ```
pub struct PlainHashMap<K: NoUninit, V: NoUninit, S = RandomState> {
    tables: Tables<Inline<K, V>>,
    hasher: S,
    /// In which tables wait that have become too small.
    domain: Domain,
    _has: PhantomData<(K, V)>,
}

impl<K: NoUninit, V: NoUninit> PlainHashMap<K, V> {
    /// Empty. Hashes are keyed by a number that is drawn when the process starts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Empty, with room for this number of keys before it grows.
    #[must_use]
    pub fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, RandomState::default())
    }
}

impl<K: NoUninit, V: NoUninit, S: Default> Default for PlainHashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K: NoUninit, V: NoUninit, S> PlainHashMap<K, V, S> {
    /// Empty, with this hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// The same, with room for this number of keys before it grows.
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        // If keys are spread well, one bucket in eight has further lines when buckets have four or
        // five entries on average.
        let buckets = (keys / 5).max(1);
        let domain = Domain::new(Config::default());
        Self { tables: Tables::new(buckets), hasher, domain, _has: PhantomData }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The domain in which a table that has become too small waits until no reader can be in it.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K: NoUninit + Hash + Eq, V: NoUninit, S: BuildHasher> PlainHashMap<K, V, S> {
    #[inline]
    fn find(&self, hash: u64, key: &K, guard: &Guard) -> Option<V> {
        let mut table = self.tables.first(guard);
        loop {
            let bucket = table.buckets().bucket(table.number(hash));
            match bucket.find(tag(hash), |other| other == key) {
                Found::There(value) => return Some(value),
                Found::Absent => return None,
                Found::Moved => table = table.next()?,
            }
        }
    }

    #[inline]
    fn lock<'g>(&'g self, hash: u64, guard: &'g Guard) -> Writing<'g, Inline<K, V>> {
        self.tables.lock(hash, |(key, _)| self.hasher.hash_one(key), guard)
    }

    /// Inserts a key; with `only_new` an existing key keeps its value. Returns the key's old value.
    #[inline]
    fn put(&self, hash: u64, entry: &(K, V), only_new: bool, guard: &Guard) -> Option<V> {
        let (table, mut locked) = self.lock(hash, guard);
        if let Some(place) = locked.find(tag(hash), |other| *other == entry.0) {
            if !only_new {
                locked.replace(&place, &entry.1);
            }
            return Some(place.value);
        }
        let has_more = locked.put_in(tag(hash), entry);
        drop(locked);
        if has_more {
            self.tables.has_more_lines(table, guard);
        }
        None
    }

    /// Takes a key out if its value's bytes are these.
    #[inline]
    fn take(&self, hash: u64, key: &K, old: Option<&V>, guard: &Guard) -> Option<V> {
        let (_, mut locked) = self.lock(hash, guard);
        let place = locked.find(tag(hash), |other| other == key)?;
        if old.is_some_and(|old| !same(old, &place.value)) {
            return None;
        }
        locked.take_out(&place);
        Some(place.value)
    }

    /// Replaces a key's value if its bytes equal those of `old`; returns whether they did.
    fn exchange(&self, hash: u64, key: &K, old: &V, new: &V, guard: &Guard) -> bool {
        let (_, locked) = self.lock(hash, guard);
        let place = locked.find(tag(hash), |other| other == key);
        let Some(place) = place.filter(|place| same(old, &place.value)) else { return false };
        locked.replace(&place, new);
        true
    }
}

/// Whether two values have the same bytes.
fn same<V: NoUninit>(one: &V, other: &V) -> bool {
    bytemuck::bytes_of(one) == bytemuck::bytes_of(other)
}

impl<K: NoUninit, V: NoUninit, S> fmt::Debug for PlainHashMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("PlainHashMap").field("domain", &self.domain).finish_non_exhaustive()
    }
}
