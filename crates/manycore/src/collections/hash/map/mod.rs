//! [`HashMap`]: a hash table for any keys and values. It grows, and readers take no lock.
//!
//! # Idea
//!
//! A bucket is one cache line. It has the addresses of six entries, and a byte of the hash of each.
//! A reader compares all six bytes at once, and follows the address of the entry whose byte
//! matches. So a look-up reads two lines, and writes nothing that other threads read. A writer
//! locks the bucket by a bit of the word that has the six bytes. The store that unlocks the bucket
//! publishes all its changes. An entry never changes, and does not move: a new value is a new
//! entry, and the old entry is freed after a [grace period](crate::reclaim).
//!
//! The table grows when one bucket in eight needs an overflow line. A writer makes the next table,
//! with twice as many buckets. Each writer then moves its own bucket and eight others. A moved
//! bucket has a mark in its word, and a thread that finds the mark goes on in the next table. Only
//! pointers are moved. So readers keep their references, and a value with interior mutability, such
//! as an atomic, remains one value all the time.
//!
//! # Source
//!
//! Comparing bytes of several hashes at once comes from "Swiss tables" (M. Kulukundis, CppCon
//! 2017). Buckets of a cache line, each with a lock, come from T. David, R. Guerraoui and V.
//! Trigonakis, "Asynchronized concurrency: the secret to scaling concurrent search data
//! structures", ASPLOS 2015 (CLHT). The step by step move to a table of twice the size comes from
//! J. Triplett, P. McKenney and J. Walpole, "Resizable, scalable, concurrent hash tables via
//! relativistic programming", USENIX ATC 2011.
//!
//! # Memory order
//!
//! A writer initialises an entry, then stores its address in a slot (Release), and then its byte in
//! the word (Release of the store that unlocks). So a thread that reads the word and the slot
//! (Acquire, both) finds an initialised entry. If the slot was reused in between, the entry may not
//! be the one of the byte; comparing the key detects that.
//!
//! A result of *absent* is right for the moment at which the word was read. Or a writer had removed
//! the key and had not inserted it again; then the result is right for that moment. A key does not
//! change its slot while it is in the bucket, so there is no third case.
//!
//! A bucket's entries are in the next table's buckets before its word has the mark (Release,
//! Acquire).
//!
//! # Cost
//!
//! A look-up reads two lines, and writes none. An insertion takes an atomic operation on the first
//! line and a node from the thread's pool; growing takes about half of its time. An entry with a
//! key and a value of a word each has 16 bytes, and its share of the buckets is 14 to 28 bytes.
//!
//! # When not to use it
//!
//! For operations on several keys at once, or on the whole map at one moment:
//! [`MvrluGrowingTable`](super::MvrluGrowingTable) has snapshots and transactions. For access in
//! the order of keys.

mod bucket;
mod iter;
mod pinned;

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use foldhash::fast::RandomState;

use super::table::{Table, Tables, Writing};
use super::word::tag;
use crate::reclaim::{Config, Domain, Guard, Handle, end_with_structure};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};
use bucket::{Bucket, Pointers, SlotRef};
pub use iter::Iter;
pub use pinned::Pinned;

/// A key and its value.
struct MapEntry<K, V> {
    key: K,
    value: V,
}

/// The map's tables.
type Entries<K, V> = Pointers<MapEntry<K, V>>;

/// The number of buckets for this many entries: four entries for each. With well-spread keys, one
/// bucket in eight then has overflow lines.
fn buckets_for(entries: usize) -> usize {
    (entries / 4).max(1)
}

/// A concurrent hash map. See the [module](self).
///
/// ```
/// use manycore::collections::HashMap;
///
/// let ages = HashMap::<String, u32>::default();
/// ages.insert("Ada".into(), 36);
/// assert_eq!(ages.get("Ada"), Some(36));
/// ages.update("Ada", |age| age + 1);
///
/// let pinned = ages.pin(); // what is read meanwhile is not freed: references
/// assert_eq!(pinned.get("Ada"), Some(&37));
/// assert_eq!(pinned.iter().count(), 1);
/// ```
pub struct HashMap<K, V, S = RandomState> {
    tables: Tables<Entries<K, V>>,
    hasher: S,
    /// The domain in which the entries' memory is managed.
    domain: Domain,
    _owns: PhantomData<MapEntry<K, V>>,
}

// SAFETY: the map owns its entries, which any thread may drop (`Send`); readers share their
// contents (`Sync`).
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send> Send for HashMap<K, V, S> {}
// SAFETY: threads share the contents of entries (`Sync`), and one may drop what another has
// inserted (`Send`); tables and buckets are atomic.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for HashMap<K, V, S> {}

impl<K, V> HashMap<K, V> {
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

impl<K, V, S: Default> Default for HashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> HashMap<K, V, S> {
    /// Creates an empty map with this hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// Creates an empty map with this hasher, and with room for this many keys before it grows.
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        Self {
            tables: Tables::new(buckets_for(keys)),
            hasher,
            domain: Domain::of_nodes::<MapEntry<K, V>>(Config::default(), 0),
            _owns: PhantomData,
        }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The domain in which removed entries wait until no thread can use them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// The entry of a key.
    #[inline]
    fn find<'g, Q>(&'g self, hash: u64, key: &Q, guard: &'g Guard) -> Option<&'g MapEntry<K, V>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut table = self.tables.first(guard);
        loop {
            let bucket = table.buckets().bucket(table.number(hash));
            if let Some(word) = bucket.read() {
                let slot_ref = bucket.find(word, tag(hash), |entry| is_of(entry, key))?;
                // SAFETY: a slot led to it in this section, so that it is not dropped before its
                // end.
                return Some(unsafe { &*slot_ref.entry() });
            }
            table = table.next()?;
        }
    }
}

/// Operations that may drop keys and values in any thread.
impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> HashMap<K, V, S> {
    /// The bucket of a hash, locked, in the table that has it.
    #[inline]
    fn lock<'g>(&'g self, hash: u64, guard: &'g Guard) -> Writing<'g, Entries<K, V>> {
        // SAFETY: the entries of a locked bucket are valid.
        let hash_of = |entry: *mut MapEntry<K, V>| self.hasher.hash_one(unsafe { &(*entry).key });
        self.tables.lock(hash, hash_of, guard)
    }

    /// Inserts a key; with `only_new`, an existing key keeps its value. Returns the key's present
    /// entry, and its old one.
    #[inline]
    fn put<'g>(
        &'g self,
        key: K,
        value: V,
        only_new: bool,
        guard: &'g Guard,
    ) -> (&'g MapEntry<K, V>, Option<&'g MapEntry<K, V>>) {
        let hash = self.hasher.hash_one(&key);
        let found = if only_new { self.find(hash, &key, guard) } else { None };
        if let Some(there) = found {
            return (there, Some(there));
        }
        let new = guard.node(MapEntry { key, value });
        let (table, mut locked) = self.lock(hash, guard);
        let slot_ref = locked.find(tag(hash), |other| is_of(other, &new.key));
        let old = slot_ref.as_ref().map(|slot_ref| {
            // SAFETY: a slot led to it in this section, so it is not dropped before the section's
            // end.
            unsafe { &*slot_ref.entry() }
        });
        if let (true, Some(there)) = (only_new, old) {
            return (there, old);
        }
        let new = new.into_raw().as_ptr();
        // SAFETY: it is in the map by the end of this function, and not dropped before the
        // section's end.
        let entry = unsafe { &*new };
        match slot_ref {
            Some(slot_ref) => {
                locked.replace(&slot_ref, new);
                drop(locked);
                // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket
                // has taken it out of reach, once.
                unsafe { guard.retire_node(slot_ref.entry()) };
            }
            None => {
                let has_more = locked.put_in(tag(hash), new);
                drop(locked);
                if has_more {
                    self.tables.has_more_lines(table, guard);
                }
            }
        }
        (entry, old)
    }

    /// Removes the key's entry if `is` returns true for it.
    fn take<'g>(
        &'g self,
        hash: u64,
        is: impl FnMut(*mut MapEntry<K, V>) -> bool,
        guard: &'g Guard,
    ) -> Option<&'g MapEntry<K, V>> {
        let (table, mut locked) = self.lock(hash, guard);
        let slot_ref = locked.find(tag(hash), is)?;
        let line = locked.take_out(&slot_ref);
        drop(locked);
        self.retire(&slot_ref, line, table, guard);
        // SAFETY: a slot led to it in this section, so it is not dropped before the section's end.
        Some(unsafe { &*slot_ref.entry() })
    }

    fn retire(
        &self,
        slot_ref: &SlotRef<'_, MapEntry<K, V>>,
        line: Option<*mut Bucket<MapEntry<K, V>>>,
        table: &Table<Entries<K, V>>,
        guard: &Guard,
    ) {
        // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket has taken
        // it out of reach, once.
        unsafe { guard.retire_node(slot_ref.entry()) };
        if let Some(line) = line {
            table.count_overflow(false);
            // SAFETY: from a box, and unlinked by the writer of its bucket, once.
            unsafe { guard.retire(line) };
        }
    }

    /// Replaces an entry by one with another value. Returns the new entry; `None` if the old one
    /// was not in the map any more.
    fn exchange<'g>(
        &'g self,
        old: &MapEntry<K, V>,
        new: MapEntry<K, V>,
        guard: &'g Guard,
    ) -> Option<&'g MapEntry<K, V>> {
        let hash = self.hasher.hash_one(&new.key);
        let entry = guard.node(new);
        let (_, locked) = self.lock(hash, guard);
        let slot_ref = locked.find(tag(hash), |other| core::ptr::eq(other, old))?;
        let entry = entry.into_raw().as_ptr();
        locked.replace(&slot_ref, entry);
        drop(locked);
        // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket has taken
        // it out of reach, once.
        unsafe { guard.retire_node(slot_ref.entry()) };
        // SAFETY: it was in the map in this section, so it is not dropped before the section's end.
        Some(unsafe { &*entry })
    }
}

/// Whether an entry has the key. A slot led to the entry in this section.
#[inline]
fn is_of<K: Borrow<Q>, V, Q: Eq + ?Sized>(entry: *mut MapEntry<K, V>, key: &Q) -> bool {
    // SAFETY: a slot led to it in the caller's section, so it is not dropped before the section's
    // end.
    unsafe { (*entry).key.borrow() == key }
}

impl<K, V, S> Drop for HashMap<K, V, S> {
    fn drop(&mut self) {
        // SAFETY: no other thread has an entry any more; entries come from `Guard::node`, and each
        // is in one bucket.
        self.tables.end(|entry| unsafe { end_with_structure(entry) });
    }
}

impl<K, V, S> fmt::Debug for HashMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HashMap").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's handle of a [`HashMap`]. Operations by a handle take some nanoseconds less than those
/// of the map itself.
#[derive(Debug)]
pub struct HashMapHandle<'a, K, V, S = RandomState> {
    map: &'a HashMap<K, V, S>,
    handle: Handle<'a>,
}

impl<K, V, S> HashMap<K, V, S> {
    /// The calling thread's handle.
    pub fn handle(&self) -> HashMapHandle<'_, K, V, S> {
        HashMapHandle { map: self, handle: self.domain.register() }
    }
}

impl<'a, K, V, S> HashMapHandle<'a, K, V, S> {
    /// The map, with one section around several operations: see [`HashMap::pin`].
    #[inline]
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned::lent(self.map, self.handle.pin())
    }
}

impl<K: Hash + Eq + Send + Sync, V: Clone + Send + Sync, S: BuildHasher + Sync + Send>
    ConcurrentMap<K, V> for HashMap<K, V, S>
{
    type Handle<'a>
        = HashMapHandle<'a, K, V, S>
    where
        Self: 'a;

    fn handle(&self) -> HashMapHandle<'_, K, V, S> {
        self.handle()
    }
}

impl<K: Hash + Eq + Send, V: Clone + Send, S: BuildHasher> MapHandle<K, V>
    for HashMapHandle<'_, K, V, S>
{
    #[inline]
    fn get(&mut self, key: &K) -> Option<V> {
        self.pin().get(key).cloned()
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.pin().insert(key, value).cloned()
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        self.pin().remove(key).cloned()
    }
}

impl<K: Hash + Eq + Send + Sync, S: BuildHasher + Sync + Send> ConcurrentSet<K>
    for HashMap<K, (), S>
{
    type Handle<'a>
        = HashMapHandle<'a, K, (), S>
    where
        Self: 'a;

    fn handle(&self) -> HashMapHandle<'_, K, (), S> {
        self.handle()
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K: Hash + Eq + Send, S: BuildHasher> SetHandle<K> for HashMapHandle<'_, K, (), S> {
    #[inline]
    fn contains(&mut self, key: &K) -> bool {
        self.pin().contains_key(key)
    }

    #[inline]
    fn insert(&mut self, key: K) -> bool {
        self.pin().insert_new(key, ()).is_none()
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        self.pin().remove(key).is_some()
    }
}
