//! [`HashMap`]: a hash table that grows, is read without a lock, and holds any keys and values.
//!
//! # Idea
//!
//! A bucket is one cache line: a byte of the hash of each of six entries, and the addresses of
//! these entries. A reader compares all six bytes at once, and follows the address of an entry
//! whose byte is its key's: two lines for a look-up. It writes nothing that others read. A writer
//! locks the bucket by a bit of the word with the six bytes, and publishes all its changes by the
//! store that unlocks. An entry never changes, and does not move: a new value is a new entry, and
//! the old one is freed after a [grace period](crate::reclaim).
//!
//! When one bucket in eight needs a further line the table grows. A next table with twice as many
//! buckets is made; each writer moves its own bucket and eight others. A moved bucket has a mark in
//! its word, and a thread that finds the mark goes on in the next table. Only pointers are moved:
//! readers keep their references, and a value with interior mutability, such as an atomic, stays
//! one value all the time.
//!
//! # Source
//!
//! Bytes of hashes that are compared together are from "Swiss tables" (M. Kulukundis, CppCon 2017);
//! buckets of a line, with a lock in each, from T. David, R. Guerraoui and V. Trigonakis,
//! "Asynchronized concurrency: the secret to scaling concurrent search data structures", ASPLOS
//! 2015 (CLHT); the step by step move to a table of twice the size from J. Triplett, P. McKenney
//! and J. Walpole, "Resizable, scalable, concurrent hash tables via relativistic programming",
//! USENIX ATC 2011.
//!
//! # Memory order
//!
//! An entry is written before it is put into its slot (Release), and the slot before its byte is in
//! the word (Release of the store that unlocks). So a thread that reads the word and the slot
//! (Acquire, both) finds an entry. If the slot was used again meanwhile, it may be another entry
//! than the byte's; comparing the key shows that. *Absent* is right for the moment at which the
//! word was read, or for a moment at which a writer had removed the key and not yet inserted it
//! again, because a key does not change its slot while it is there. A bucket's entries are in the
//! next table's buckets before the word has the mark (Release, Acquire).
//!
//! # Cost
//!
//! A look-up reads two lines, and writes none. An insertion takes an atomic operation on the first
//! line and a node from the thread's pool; growing takes about half of its time. An entry with a
//! key and a value of a word each has 16 bytes, and its place takes 14 to 28.
//!
//! # When not to use it
//!
//! For what concerns several keys at once, or one moment of the whole map:
//! [`MvrluGrowingTable`](super::MvrluGrowingTable) has snapshots and transactions. For keys in
//! order.

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
use bucket::{Bucket, Place, Pointers};
pub use iter::Iter;
pub use pinned::Pinned;

/// A key and its value.
struct Entry<K, V> {
    key: K,
    value: V,
}

/// The map's tables.
type Entries<K, V> = Pointers<Entry<K, V>>;

/// How many buckets are enough for this number of entries: four entries for each. With well-spread
/// keys one bucket in eight then has overflow lines.
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
    /// In whose memory the entries are.
    domain: Domain,
    _owns: PhantomData<Entry<K, V>>,
}

// SAFETY: the map owns its entries, which any thread may drop (`Send`); threads that read share
// their contents (`Sync`).
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send> Send for HashMap<K, V, S> {}
// SAFETY: threads share the contents of entries (`Sync`), and one may drop what another has
// inserted (`Send`); tables and buckets are atomic.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for HashMap<K, V, S> {}

impl<K, V> HashMap<K, V> {
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

impl<K, V, S: Default> Default for HashMap<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> HashMap<K, V, S> {
    /// Empty, with this hasher.
    pub fn with_hasher(hasher: S) -> Self {
        Self::with_capacity_and_hasher(0, hasher)
    }

    /// The same, with room for this number of keys before it grows.
    pub fn with_capacity_and_hasher(keys: usize, hasher: S) -> Self {
        Self {
            tables: Tables::new(buckets_for(keys)),
            hasher,
            domain: Domain::of_nodes::<Entry<K, V>>(Config::default(), 0),
            _owns: PhantomData,
        }
    }

    /// The hasher.
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// Where what was taken out waits until nobody can be on it.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> HashMap<K, V, S> {
    /// The entry of a key.
    #[inline]
    fn find<'g, Q>(&'g self, hash: u64, key: &Q, guard: &'g Guard) -> Option<&'g Entry<K, V>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut table = self.tables.first(guard);
        loop {
            let bucket = table.buckets().bucket(table.number(hash));
            if let Some(word) = bucket.read() {
                let place = bucket.find(word, tag(hash), |entry| is_of(entry, key))?;
                // SAFETY: a slot led to it in this section, so that it is not dropped before its
                // end.
                return Some(unsafe { &*place.entry() });
            }
            table = table.next()?;
        }
    }
}

/// What any thread may drop.
impl<K: Hash + Eq + Send, V: Send, S: BuildHasher> HashMap<K, V, S> {
    /// The bucket of a hash, locked, in the table that has it.
    #[inline]
    fn lock<'g>(&'g self, hash: u64, guard: &'g Guard) -> Writing<'g, Entries<K, V>> {
        // SAFETY: an entry of a bucket that is locked is there.
        let hash_of = |entry: *mut Entry<K, V>| self.hasher.hash_one(unsafe { &(*entry).key });
        self.tables.lock(hash, hash_of, guard)
    }

    /// Inserts a key; with `only_new` an existing key keeps its value. Returns the key's present
    /// entry, and its old one.
    #[inline]
    fn put<'g>(
        &'g self,
        key: K,
        value: V,
        only_new: bool,
        guard: &'g Guard,
    ) -> (&'g Entry<K, V>, Option<&'g Entry<K, V>>) {
        let hash = self.hasher.hash_one(&key);
        let found = if only_new { self.find(hash, &key, guard) } else { None };
        if let Some(there) = found {
            return (there, Some(there));
        }
        let new = guard.node(Entry { key, value });
        let (table, mut locked) = self.lock(hash, guard);
        let place = locked.find(tag(hash), |other| is_of(other, &new.key));
        let old = place.as_ref().map(|place| {
            // SAFETY: a slot led to it in this section, so that it is not dropped before its end.
            unsafe { &*place.entry() }
        });
        if let (true, Some(there)) = (only_new, old) {
            return (there, old);
        }
        let new = new.into_raw().as_ptr();
        // SAFETY: it is in the map by the end of this function, and not dropped before the
        // section's end.
        let entry = unsafe { &*new };
        match place {
            Some(place) => {
                locked.replace(&place, new);
                drop(locked);
                // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket
                // has taken it out of reach, once.
                unsafe { guard.retire_node(place.entry()) };
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

    /// Takes an entry out of which `is` says yes.
    fn take<'g>(
        &'g self,
        hash: u64,
        is: impl FnMut(*mut Entry<K, V>) -> bool,
        guard: &'g Guard,
    ) -> Option<&'g Entry<K, V>> {
        let (table, mut locked) = self.lock(hash, guard);
        let place = locked.find(tag(hash), is)?;
        let line = locked.take_out(&place);
        drop(locked);
        self.retire(&place, line, table, guard);
        // SAFETY: a slot led to it in this section, so that it is not dropped before its end.
        Some(unsafe { &*place.entry() })
    }

    fn retire(
        &self,
        place: &Place<'_, Entry<K, V>>,
        line: Option<*mut Bucket<Entry<K, V>>>,
        table: &Table<Entries<K, V>>,
        guard: &Guard,
    ) {
        // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket has taken
        // it out of reach, once.
        unsafe { guard.retire_node(place.entry()) };
        if let Some(line) = line {
            table.count_further(false);
            // SAFETY: from a box, and unlinked by the writer of its bucket, once.
            unsafe { guard.retire(line) };
        }
    }

    /// Puts a value in place of an entry's, if the entry is still there; Returns the new entry,
    /// unless the old one has gone.
    fn exchange<'g>(
        &'g self,
        old: &Entry<K, V>,
        new: Entry<K, V>,
        guard: &'g Guard,
    ) -> Option<&'g Entry<K, V>> {
        let hash = self.hasher.hash_one(&new.key);
        let entry = guard.node(new);
        let (_, locked) = self.lock(hash, guard);
        let place = locked.find(tag(hash), |other| core::ptr::eq(other, old))?;
        let entry = entry.into_raw().as_ptr();
        locked.replace(&place, entry);
        drop(locked);
        // SAFETY: `Guard::node` of this domain has made it, and the writer of its bucket has taken
        // it out of reach, once.
        unsafe { guard.retire_node(place.entry()) };
        // SAFETY: it was in the map in this section, so that it is not dropped before its end.
        Some(unsafe { &*entry })
    }
}

/// Whether an entry that a slot led to in this section has the key.
#[inline]
fn is_of<K: Borrow<Q>, V, Q: Eq + ?Sized>(entry: *mut Entry<K, V>, key: &Q) -> bool {
    // SAFETY: a slot led to it in the caller's section, so that it is not dropped before its end.
    unsafe { (*entry).key.borrow() == key }
}

impl<K, V, S> Drop for HashMap<K, V, S> {
    fn drop(&mut self) {
        // SAFETY: no other thread has an entry any more; entries are from `Guard::node`, and each
        // is in one bucket.
        self.tables.end(|entry| unsafe { end_with_structure(entry) });
    }
}

impl<K, V, S> fmt::Debug for HashMap<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HashMap").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to a [`HashMap`]: an operation costs some nanoseconds less than by the map
/// itself.
#[derive(Debug)]
pub struct HashMapHandle<'a, K, V, S = RandomState> {
    map: &'a HashMap<K, V, S>,
    handle: Handle<'a>,
}

impl<K, V, S> HashMap<K, V, S> {
    /// The calling thread's access.
    pub fn handle(&self) -> HashMapHandle<'_, K, V, S> {
        HashMapHandle { map: self, handle: self.domain.register() }
    }
}

impl<'a, K, V, S> HashMapHandle<'a, K, V, S> {
    /// The map with a section around what is done: see [`HashMap::pin`].
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
