//! [`PlainHashMap`]: a hash table for plain data, which is stored in the buckets themselves.
//!
//! # Idea
//!
//! A number, an array of numbers, or a structure without padding is nothing but its bytes. So an
//! entry needs no memory of its own. A bucket has six or seven entries, and a byte of the hash of
//! each. A look-up of a one-word key reads one cache line or two adjacent ones. A new value
//! overwrites the old one. An insertion allocates nothing. Only a table that has become too small
//! has to wait for a grace period.
//!
//! A reader takes no lock. If another thread writes an entry while it is read, the bucket's version
//! tells the reader so, and it reads again. The version grows before a slot is reused, and is odd
//! while a value of more than one word is replaced. So a reader waits only for that write, some
//! nanoseconds. A writer locks the bucket by a bit of its first word, as in
//! [`HashMap`](super::HashMap), and the table grows in the same steps.
//!
//! # Source
//!
//! The version is a sequence lock. Its protocol, with the fences, is that of H.-J. Boehm, "Can
//! seqlocks get along with programming language memory models?", MSPC 2012. The other sources are
//! those of [`map`](super::map).
//!
//! # Memory order
//!
//! *A slot is reused.* A writer removes the tag (Release of the word). Later the same or another
//! writer increases the version (Release), and then writes the slot after a Release fence. A reader
//! reads the version (Acquire), the word (Acquire), the slot, and after an Acquire fence the
//! version once more. There are two cases:
//!
//! - The reader has read a byte of the new entry. Then the fences show it the new version at the
//!   end. If it had the old version at the start, it reads again.
//! - The reader had the new version at the start. Then it also knows that the old tag was removed.
//!   So it read the slot because of the new tag, which a Release of its own stores after the entry.
//!
//! A result of *absent* is right for the moment at which the bucket's word was read, or for a later
//! one: see [`map`](super::map).
//!
//! # Cost
//!
//! Seven entries of two words each and their state take 136 bytes, and six of one word 72. With the
//! growth by doubling, that is 28 to 56 bytes an entry, and 17 to 34.
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
use bucket::{Inline, Lookup};
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
    /// The domain in which tables that have become too small wait to be freed.
    domain: Domain,
    _has: PhantomData<(K, V)>,
}

impl<K: NoUninit, V: NoUninit> PlainHashMap<K, V> {
    /// Creates an empty map. Hashes are keyed by a number that is drawn when the process starts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty map with room for this many keys before it grows.
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
    /// Creates an empty map with this hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// Creates an empty map with this hasher, and with room for this many keys before it grows.
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        // If keys are spread well, one bucket in eight has overflow lines when buckets have four or
        // five entries on average.
        let buckets = (keys / 5).max(1);
        let domain = Domain::new(Config::default());
        Self { tables: Tables::new(buckets), hasher, domain, _has: PhantomData }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The domain in which a table that has become too small waits until no reader can use it.
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
                Lookup::Found(value) => return Some(value),
                Lookup::Absent => return None,
                Lookup::Moved => table = table.next()?,
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
        if let Some(slot_ref) = locked.find(tag(hash), |other| *other == entry.0) {
            if !only_new {
                locked.replace(&slot_ref, &entry.1);
            }
            return Some(slot_ref.value);
        }
        let has_more = locked.put_in(tag(hash), entry);
        drop(locked);
        if has_more {
            self.tables.has_more_lines(table, guard);
        }
        None
    }

    /// Removes a key if its value has these bytes.
    #[inline]
    fn take(&self, hash: u64, key: &K, old: Option<&V>, guard: &Guard) -> Option<V> {
        let (_, mut locked) = self.lock(hash, guard);
        let slot_ref = locked.find(tag(hash), |other| other == key)?;
        if old.is_some_and(|old| !same(old, &slot_ref.value)) {
            return None;
        }
        locked.take_out(&slot_ref);
        Some(slot_ref.value)
    }

    /// Replaces a key's value if its bytes equal those of `old`; returns whether they did.
    fn exchange(&self, hash: u64, key: &K, old: &V, new: &V, guard: &Guard) -> bool {
        let (_, locked) = self.lock(hash, guard);
        let slot_ref = locked.find(tag(hash), |other| other == key);
        let Some(slot_ref) = slot_ref.filter(|slot_ref| same(old, &slot_ref.value)) else {
            return false;
        };
        locked.replace(&slot_ref, new);
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
