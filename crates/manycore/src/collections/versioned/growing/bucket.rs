//! A bucket: its level, its entries with a tag each, and the chain of the entries that do not fit.

mod edit;

use core::hash::Hash;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use super::tags::{self, Tags};
use crate::session::{Conflict, Link, RawSession};

/// The number of words for entries with which an object takes 128 bytes.
const WORDS: usize = 12;

/// Invariant: the first `length` entries are written, and have the tags of their keys; all other
/// tags are 0. A bucket of zero bytes does not exist yet.
#[repr(C)]
pub struct Bucket<K, V> {
    /// The first entry of the chain.
    more: Link<Entry<K, V>>,
    tags: Tags,
    /// One more than the level; 0 if the bucket does not exist yet. The level is the number of the
    /// hash's bits in the bucket's number.
    level_plus_1: u8,
    /// How many entries there are here.
    length: u8,
    /// Entries, one after the other.
    room: [MaybeUninit<u64>; WORDS],
    _entries: PhantomData<(K, V)>,
}

/// An entry in a chain. Written in sessions that have locked its bucket.
pub struct Entry<K, V> {
    next: Link<Entry<K, V>>,
    key: K,
    value: V,
}

/// An entry in a chain, and where it is.
type LinkedEntry<'s, K, V> = (Link<Entry<K, V>>, &'s Entry<K, V>);

impl<K: Copy, V: Copy> Clone for Bucket<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, V: Copy> Copy for Bucket<K, V> {}

impl<K: Copy, V: Copy> Clone for Entry<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Copy, V: Copy> Copy for Entry<K, V> {}

impl<K: Copy, V: Copy> Bucket<K, V> {
    /// The number of entries for which a bucket has room. Entries of size zero fit, too; entries
    /// that are aligned to more than a word do not.
    pub const ROOM: usize = {
        let (size, align) = (size_of::<(K, V)>(), align_of::<(K, V)>());
        if align > align_of::<u64>() {
            0
        } else {
            let most = size_of::<[u64; WORDS]>() / if size == 0 { 8 } else { size };
            if most < tags::MOST { most } else { tags::MOST }
        }
    };

    /// Creates one without entries.
    pub fn new(level: u8) -> Self {
        let room = [MaybeUninit::uninit(); WORDS];
        let tags = Tags::default();
        Self {
            more: Link::NULL,
            tags,
            level_plus_1: level + 1,
            length: 0,
            room,
            _entries: PhantomData,
        }
    }

    /// What all zero bytes are.
    #[cfg(loom)]
    pub fn absent() -> Self {
        Self { level_plus_1: 0, ..Self::new(0) }
    }

    #[inline]
    pub fn is_there(&self) -> bool {
        self.level_plus_1 != 0
    }

    /// The level of a bucket that is there.
    #[inline]
    pub fn level(&self) -> u8 {
        self.level_plus_1 - 1
    }

    /// The number of the bucket of this level for keys with this hash.
    #[inline]
    pub fn number_of(&self, hash: usize) -> usize {
        hash & ((1 << self.level()) - 1)
    }

    /// Whether this bucket, which has that number, is the one for keys with this hash.
    #[inline]
    pub fn has(&self, hash: usize, number: usize) -> bool {
        self.is_there() && self.number_of(hash) == number
    }

    pub fn has_no_chain(&self) -> bool {
        self.more.is_null()
    }

    #[inline]
    pub fn entries(&self) -> &[(K, V)] {
        if Self::ROOM == 0 {
            return &[]; // the first word may not be aligned as they are
        }
        // SAFETY: the first `length` entries are written (invariant of `Bucket`), from the first
        // word on, which has their alignment if there is room for any.
        unsafe { core::slice::from_raw_parts(self.at(0), usize::from(self.length)) }
    }

    /// Where the entry with this number is.
    #[inline]
    fn at(&self, index: usize) -> *const (K, V) {
        self.room.as_ptr().cast::<(K, V)>().wrapping_add(index)
    }

    #[inline]
    fn at_mut(&mut self, index: usize) -> *mut (K, V) {
        self.room.as_mut_ptr().cast::<(K, V)>().wrapping_add(index)
    }

    /// Adds an entry, whose key is not there. A chain's new entry is allocated.
    ///
    /// # Safety
    ///
    /// To be called in the session in which the bucket is locked, or in which no other thread has
    /// it yet.
    pub unsafe fn add<S: RawSession>(&mut self, session: &mut S, hash: usize, key: K, value: V) {
        let end = usize::from(self.length);
        if end < Self::ROOM {
            // SAFETY: the place is below `ROOM`, so that the entry is within the words, which are
            // aligned as entries are.
            unsafe { self.at_mut(end).write((key, value)) };
            self.tags.put(end, hash);
            self.length += 1;
        } else {
            // SAFETY: the session is open (contract of this function).
            self.more = unsafe { session.alloc(Entry { next: self.more, key, value }) };
        }
    }

    /// Calls `f` with each entry, until it returns false; returns whether it never did.
    ///
    /// # Safety
    ///
    /// In a session in which the bucket was found.
    pub unsafe fn all<'s, S: RawSession>(
        &'s self,
        session: &'s S,
        f: &mut impl FnMut(&'s K, &'s V) -> bool,
    ) -> bool {
        if !self.entries().iter().all(|(key, value)| f(key, value)) {
            return false;
        }
        let mut next = self.more;
        while !next.is_null() {
            // SAFETY: the bucket was found in this session (contract of this function), and so is
            // the link: the entry stays until the session's end.
            let entry = unsafe { &*session.deref(next) };
            if !f(&entry.key, &entry.value) {
                return false;
            }
            next = entry.next;
        }
        true
    }

    #[inline]
    fn position(&self, hash: usize, is: impl Fn(&K) -> bool) -> Option<usize> {
        let entries = self.entries();
        self.tags.like(hash).find(|&index| is(&entries[index].0))
    }

    /// The entry with this hash for which `is` returns true.
    ///
    /// # Safety
    ///
    /// In a session in which the bucket was found.
    #[inline]
    pub unsafe fn find<'s, S: RawSession>(
        &'s self,
        session: &'s S,
        hash: usize,
        is: impl Fn(&K) -> bool,
    ) -> Option<(&'s K, &'s V)> {
        if let Some(index) = self.position(hash, &is) {
            let (key, value) = &self.entries()[index];
            return Some((key, value));
        }
        // SAFETY: the bucket was found in this session (contract of this function).
        unsafe { self.find_in_chain(session, is) }.map(|(_, entry)| (&entry.key, &entry.value))
    }

    /// The position of the key's entry in the chain, if it is there. Under
    /// [`View::Latest`](crate::session::View) another entry may be there a moment later.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find).
    #[inline]
    unsafe fn find_in_chain<'s, S: RawSession>(
        &self,
        session: &'s S,
        is: impl Fn(&K) -> bool,
    ) -> Option<LinkedEntry<'s, K, V>> {
        let mut next = self.more;
        while !next.is_null() {
            // SAFETY: the bucket was found in this session (contract of this function), and so is
            // the link: the entry stays until the session's end.
            let entry = unsafe { &*session.deref(next) };
            if is(&entry.key) {
                return Some((next, entry));
            }
            next = entry.next;
        }
        None
    }
}

impl<K: Copy + Eq + Hash, V: Copy> Bucket<K, V> {
    /// The key's value.
    ///
    /// # Safety
    ///
    /// In a session in which the bucket was found.
    #[inline]
    pub unsafe fn get<S: RawSession>(&self, session: &S, hash: usize, key: &K) -> Option<V> {
        // SAFETY: the session has found the bucket (contract of this function), which stays until
        // its end.
        unsafe { self.find(session, hash, |of_entry| of_entry == key) }.map(|(_, value)| *value)
    }

    /// Gives the key a value, unless the key has one that must be kept; returns the old value.
    ///
    /// # Safety
    ///
    /// To be called in the session in which the bucket is locked; it is the copy.
    pub unsafe fn insert<S: RawSession>(
        &mut self,
        session: &mut S,
        hash: usize,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict> {
        if let Some(index) = self.position(hash, |of_entry| *of_entry == key) {
            let old = self.entries()[index].1;
            if !keep {
                // SAFETY: the index belongs to one of the entries, which are within the words.
                unsafe { self.at_mut(index).write((key, value)) };
            }
            return Ok(Some(old));
        }
        // SAFETY: the bucket is this session's copy (contract of this function), whose chain the
        // session finds: its entries stay until the session's end.
        unsafe {
            if let Some((place, old)) = self.find_in_chain(session, |of_entry| *of_entry == key) {
                let old = old.value;
                if !keep {
                    (*session.try_lock(place)?).value = value;
                }
                return Ok(Some(old));
            }
            self.add(session, hash, key, value);
            Ok(None)
        }
    }
}

impl<K: Copy + Hash, V: Copy> Bucket<K, V> {
    /// Splits off another bucket, which gets the keys whose hashes have the next bit set. Returns
    /// false, and splits off none, if the chain has more entries than may be freed.
    ///
    /// # Safety
    ///
    /// In a session; both are buckets of one table, and only the parent is there.
    pub unsafe fn divide<S: RawSession>(
        session: &mut S,
        parent: Link<Self>,
        child: Link<Self>,
        most: usize,
        hash_of: impl Fn(&K) -> usize,
    ) -> Result<bool, Conflict> {
        // SAFETY: the session is open, and the buckets are of one table (contract of this
        // function), so they stay. `whole` and `other` are this session's copies of different
        // objects. After the commit nothing leads to the freed entries: the links to them were in
        // `whole`.
        unsafe {
            if (*session.deref(parent)).has_chained_more_than(session, most) {
                return Ok(false);
            }
            let whole: *mut Self = session.try_lock(parent)?;
            let other: *mut Self = session.try_lock(child)?;
            let old = *whole;
            let level = old.level();
            let mut parts = [Self::new(level + 1); 2];
            let mut give = |session: &mut S, key: K, value: V| {
                let hash = hash_of(&key);
                parts[hash >> level & 1].add(session, hash, key, value);
            };
            old.entries().iter().for_each(|(key, value)| give(session, *key, *value));
            let mut next = old.more;
            while !next.is_null() {
                let entry = *session.deref(next);
                session.free(next)?;
                give(session, entry.key, entry.value);
                next = entry.next;
            }
            [*whole, *other] = parts;
            Ok(true)
        }
    }

    /// # Safety
    ///
    /// In a session in which the bucket was found.
    unsafe fn has_chained_more_than<S: RawSession>(&self, session: &S, most: usize) -> bool {
        let (mut next, mut count) = (self.more, 0);
        while !next.is_null() && count <= most {
            // SAFETY: the bucket was found in this session (contract of this function), and so is
            // the link: the entry stays until the session's end.
            next = unsafe { (*session.deref(next)).next };
            count += 1;
        }
        count > most
    }
}
