//! A growing number of buckets: now and then one is split, in a transaction.
//!
//! # Idea
//!
//! A bucket is one object that contains its entries, and an operation on one key reads or writes
//! only one version of it. Its number is formed by the lowest bits of its keys' hashes, and its
//! *level* is the number of those bits:
//!
//! ```text
//!   bucket 1, level 2 ( ..01 )                    bucket 1, level 3 ( .001 )
//!   +----------------------+    bucket 5 is      +----------------------+
//!   | 0001 1001 0101 1101  |    split off:       | 0001 1001            |
//!   +----------------------+                     +----------------------+
//!                                                bucket 5, level 3 ( .101 )
//!                                                +----------------------+
//!                                                | 0101 1101            |
//!                                                +----------------------+
//! ```
//!
//! Buckets are split off in the order of their numbers. A bucket is split off from the one whose
//! number is the same without the highest bit. So the number of buckets determines where a key is,
//! but only as a guess. A thread that comes to a bucket reads the level in the version that its
//! session sees, and goes on to the bucket where the key belongs according to that level. If the
//! session does not see the bucket yet, the thread goes to the one from which it will be split off.
//! So a snapshot sees the table as it was, however much it has grown since.
//!
//! A split is a transaction on two buckets. So readers see it as a whole or not at all, and never
//! wait. A thread that has inserted a key splits a bucket if it finds that there are too many keys
//! for the number of buckets.
//!
//! Entries that do not fit into a bucket are in a chain, to which the bucket leads. They change
//! only in sessions that have locked the bucket. When an entry of the bucket is removed, the first
//! of the chain takes its place: that locks two objects, however long the chain is. A reader that
//! walks the chain from an older version of the bucket still finds the first entry in it, and no
//! reader sees a half-split bucket.
//!
//! To split a bucket, a transaction frees its chain and makes two. If the chain has more entries
//! than one transaction can free ([`RawSession::locks_max`]: 15,555 with MV-RLU's default logs, any
//! number with RLU), the bucket stays as it is, and no bucket is split off from it; all other
//! buckets are split as usual. That happens only with that many keys whose hashes are equal, which
//! no number of buckets would separate.
//!
//! Buckets are in arrays, so a bucket's address follows from its number: there is one array for the
//! first buckets, and eight for each doubling.
//!
//! # Source
//!
//! W. Litwin, "Linear hashing: a new tool for file and table addressing", VLDB 1980, for the order
//! in which buckets are split; R. Fagin, J. Nievergelt, N. Pippenger and H. R. Strong, "Extendible
//! hashing", TODS 1979, for levels; M. Kulukundis, "Designing a fast, efficient, cache-friendly
//! hash table, step by step", CppCon 2017, for a byte of each entry's hash. Our own part is that a
//! split is a transaction of MV-RLU.
//!
//! # Memory order
//!
//! The sessions' mechanism orders the contents of a bucket. An array, whose buckets do not exist
//! yet, is released when it is made, and acquired by a thread that searches for one of its buckets.
//! The number of buckets and that of keys are guesses: a thread that does not know an array yet
//! goes to the bucket from which the searched one is split off.
//!
//! # Cost
//!
//! A look-up reads the bucket's first line, with a byte of each entry's hash, and the second line
//! if an entry there has the same byte. A bucket is 128 bytes, half full on average. With 100,000
//! keys most of a look-up's time is the cache miss of the first line. With the addresses of buckets
//! in a separate table there were two misses, one after the other, and look-ups were a seventh
//! slower. With 10 million keys the miss in the TLB costs as much, and large pages are a quarter
//! faster.
//!
//! # When not to use it
//!
//! For entries of more than some ten bytes, which are then mostly in chains. For keys that an
//! attacker may choose to collide, unless the hasher has a secret. The table never shrinks.

mod any;
mod array;
mod bucket;
mod directory;
mod dismantle;
mod tags;

use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use super::{Arrangement, Placement, Versioned};
use crate::collections::hashing::Mixing;
use crate::session::{self, Conflict, Link, RawSession, Sessions, View};
use crate::sync::mutation;
pub(in crate::collections) use bucket::Bucket;
use bucket::Entry;
pub use directory::Directory;

/// Keys in a growing number of buckets. `S` makes their hashes.
#[derive(Debug)]
pub struct Growing<S = Mixing>(PhantomData<fn() -> S>);

impl Arrangement for Growing {
    type Parts<K: Copy, V: Copy> = Directory<K, V>;

    const VIEW: View = View::Latest;

    fn has_gone<K: Copy, V: Copy>(parts: &Directory<K, V>, more: isize) {
        parts.count(more);
    }
}

/// The largest number of keys that a thread inserts or removes before it reports them.
pub(in crate::collections) const UNTOLD: isize = 32;

/// What keeps a bucket from being split off now.
enum Split {
    /// Nothing: it is there.
    Done,
    /// This one has to be split off before.
    After(usize),
    /// The bucket's chain has more entries than one transaction can split. The bucket stays as it
    /// is, and no bucket is split off from it.
    Refused,
}

impl<K: Copy, V: Copy, M: Sessions> Versioned<K, V, M, Growing> {
    /// Creates a table without entries, with room for this many. It grows when there are more than
    /// this many entries for each bucket.
    pub(in crate::collections) fn with_load(domain: M, keys: usize, load: usize) -> Self {
        // Not more than are needed: the others are split off when keys are inserted.
        let first = 1 << (keys / load.max(1)).max(1).ilog2();
        Self { domain, parts: Directory::new(first, load, Mixing) }
    }

    /// Does the same, with as many keys for each bucket as fill half of it.
    pub(in crate::collections) fn with_room(domain: M, keys: usize) -> Self {
        Self::with_load(domain, keys, Bucket::<K, V>::ROOM / 2)
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> usize {
        self.parts.buckets()
    }
}

impl<K: Copy + Hash, V: Copy, H: BuildHasher> Directory<K, V, H> {
    /// The bucket of keys with this hash, as the session sees it: its address, its number, and its
    /// contents.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the buckets belong.
    #[inline]
    pub(in crate::collections) unsafe fn find<'s, S: RawSession>(
        &self,
        session: &'s S,
        hash: usize,
    ) -> (Link<Bucket<K, V>>, usize, &'s Bucket<K, V>) {
        let mut number = self.guess(hash);
        loop {
            let link = self.place(number);
            // SAFETY: the session is one of the domain to which the buckets belong (contract of
            // this function), and buckets stay as long as the table.
            let bucket = (!link.is_null()).then(|| unsafe { &*session.deref(link) });
            match bucket.filter(|bucket| bucket.is_there()) {
                Some(bucket) if bucket.has(hash, number) => return (link, number, bucket),
                Some(bucket) => number = bucket.number_of(hash),
                None => number = self.parent(number),
            }
        }
    }

    /// Splits off one more bucket, if there are too many keys.
    ///
    /// # Safety
    ///
    /// The caller is in no session; the handle belongs to the buckets' domain.
    #[cold]
    pub(in crate::collections) unsafe fn grow<S: RawSession>(&self, handle: &mut S, splits: isize) {
        for _ in 0..splits {
            let Some(number) = self.claim() else { return };
            // SAFETY: the caller is in no session, the handle is of the buckets' domain (contract
            // of this function), and the number comes from `claim`.
            unsafe { self.split_off(handle, number) };
        }
    }

    /// Splits off a claimed bucket, unless that was done already. Several threads may try: the
    /// thread that has claimed it may be slow, and a bucket of the next round may have to be split
    /// off from it. If one of the buckets has too many entries, it stays as it is.
    ///
    /// # Safety
    ///
    /// As for [`grow`](Self::grow).
    unsafe fn split_off<S: RawSession>(&self, handle: &mut S, number: usize) -> Split {
        loop {
            let split = session::retry(handle, View::Snapshot, |session| {
                let most = session.locks_max::<Entry<K, V>>();
                // SAFETY: `retry` has begun the session, of the domain to which the buckets belong
                // (contract of this function).
                unsafe { self.try_split_off(session, number, most) }
            });
            let Split::After(other) = split else { return split };
            // SAFETY: the caller is in no session, the handle is of the buckets' domain (contract
            // of this function), and the bucket is not one of the first.
            if let Split::Refused = unsafe { self.split_off(handle, other) } {
                return Split::Refused;
            }
        }
    }

    /// Splits off a bucket in an open session, if the bucket from which it is split off exists, and
    /// has no more than this many entries in its chain.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the buckets belong.
    unsafe fn try_split_off<S: RawSession>(
        &self,
        session: &mut S,
        number: usize,
        most: usize,
    ) -> Result<Split, Conflict> {
        let parent = self.parent(number);
        let level = number.ilog2() as u8;
        let (place, place_of_parent) = (self.place_or_make(number), self.place_or_make(parent));
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function); those stay as long as the table.
        unsafe {
            if (*session.deref(place)).is_there() {
                return Ok(Split::Done);
            }
            let known = &*session.deref(place_of_parent);
            if !known.is_there() {
                return Ok(Split::After(parent));
            }
            if known.level() < level {
                return Ok(Split::After(parent | 1 << known.level()));
            }
            let hash_of = |key: &K| self.hash_of(key);
            let is_done = Bucket::divide(session, place_of_parent, place, most, hash_of)?;
            Ok(if is_done { Split::Done } else { Split::Refused })
        }
    }
}

/// For sessions that are open, or were.
#[cfg(not(loom))]
impl<K: Copy + Hash, V: Copy, H: BuildHasher> Directory<K, V, H> {
    /// Splits off a claimed bucket, and those before it, in an open session.
    ///
    /// # Safety
    ///
    /// As for [`try_split_off`](Self::try_split_off).
    unsafe fn split_off_within<S: RawSession>(
        &self,
        session: &mut S,
        number: usize,
    ) -> Result<bool, Conflict> {
        loop {
            // SAFETY: the session is one of the buckets' domain (contract of this function).
            match unsafe { self.try_split_off(session, number, CHAINED) }? {
                Split::Done => return Ok(true),
                Split::Refused => return Ok(false),
                Split::After(other) => {
                    // SAFETY: the session is one of the buckets' domain (contract of this
                    // function).
                    let is_done = unsafe { self.split_off_within(session, other) }?;
                    if !is_done {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Splits off one more bucket in an open session, if there are too many keys. Returns its
    /// number: if the session is aborted, the bucket has to be split off by
    /// [`split_off_again`](Self::split_off_again).
    ///
    /// # Safety
    ///
    /// As for [`try_split_off`](Self::try_split_off).
    pub(in crate::collections) unsafe fn grow_within<S: RawSession>(
        &self,
        session: &mut S,
    ) -> Result<Option<usize>, Conflict> {
        let Some(number) = self.claim() else { return Ok(None) };
        // SAFETY: the session is one of the buckets' domain (contract of this function).
        unsafe { self.split_off_within(session, number) }.map(|_| Some(number))
    }

    /// Splits off a bucket whose split was aborted.
    ///
    /// # Safety
    ///
    /// As for [`grow`](Self::grow).
    pub(in crate::collections) unsafe fn split_off_again<S: RawSession>(
        &self,
        handle: &mut S,
        number: usize,
    ) {
        // SAFETY: the caller is in no session, and the handle is of the buckets' domain (contract
        // of this function). A refusal is acceptable.
        unsafe { self.split_off(handle, number) };
    }
}

/// How many entries of a chain are freed in one transaction, where it may have other objects to
/// lock.
const CHAINED: usize = 128;

impl<K: Copy, V: Copy, H> Directory<K, V, H> {
    /// Calls `f` with each entry of a bucket, and of those that were split off from it, until `f`
    /// returns false; returns whether it never did.
    ///
    /// # Safety
    ///
    /// The caller is in a snapshot of the buckets' domain, and the bucket exists.
    unsafe fn visit<'s, S: RawSession>(
        &self,
        session: &'s S,
        number: usize,
        f: &mut impl FnMut(&'s K, &'s V) -> bool,
    ) -> bool
    where
        K: 's,
        V: 's,
    {
        // SAFETY: the session is a snapshot of the domain to which the buckets belong (contract of
        // this function); an existing bucket has memory, which stays as long as the table.
        let bucket = unsafe { &*session.deref(self.place(number)) };
        // SAFETY: the bucket was found in this session just now; its level shows that the others
        // were split off it, in this snapshot.
        unsafe {
            bucket.all(session, f)
                && (self.first_level(number)..bucket.level())
                    .all(|bit| self.visit(session, number | 1 << bit, f))
        }
    }

    /// Calls `f` with each entry, until it returns false.
    ///
    /// # Safety
    ///
    /// In a snapshot of the domain to which the buckets belong.
    pub(in crate::collections) unsafe fn visit_all<'s, S: RawSession>(
        &self,
        session: &'s S,
        mut f: impl FnMut(&'s K, &'s V) -> bool,
    ) where
        K: 's,
        V: 's,
    {
        // SAFETY: the session is a snapshot of the buckets' domain (contract of this function); the
        // first buckets exist from the beginning.
        (0..self.first()).all(|number| unsafe { self.visit(session, number, &mut f) });
    }
}

impl<K: Copy + Eq + Hash> Placement<K> for Growing {
    #[inline]
    unsafe fn get<V: Copy, S: RawSession>(
        parts: &Directory<K, V>,
        session: &S,
        key: &K,
    ) -> Option<V> {
        let hash = parts.hash_of(key);
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function), and buckets stay as long as the table. `try_lock` returns this session's copy,
        // to which nothing else refers.
        unsafe {
            let (_, _, bucket) = parts.find(session, hash);
            bucket.get(session, hash, key)
        }
    }

    #[inline]
    unsafe fn insert<V: Copy, S: RawSession>(
        parts: &Directory<K, V>,
        session: &mut S,
        key: K,
        value: V,
        keep: bool,
    ) -> Result<Option<V>, Conflict> {
        let hash = parts.hash_of(&key);
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function), and buckets stay as long as the table. `try_lock` returns this session's copy,
        // to which nothing else refers.
        unsafe {
            let (link, number, seen) = parts.find(session, hash);
            if keep {
                let old = seen.get(session, hash, &key);
                if old.is_some() {
                    return Ok(old);
                }
            }
            let bucket = &mut *session.try_lock(link)?;
            if !bucket.has(hash, number) && !mutation!("growing-trusts") {
                return Err(Conflict::Retry);
            }
            bucket.insert(session, hash, key, value, keep)
        }
    }

    #[inline]
    unsafe fn remove<V: Copy, S: RawSession>(
        parts: &Directory<K, V>,
        session: &mut S,
        key: &K,
    ) -> Result<Option<V>, Conflict> {
        let hash = parts.hash_of(key);
        // SAFETY: the session is one of the domain to which the buckets belong (contract of this
        // function), and buckets stay as long as the table. `try_lock` returns this session's copy,
        // to which nothing else refers.
        unsafe {
            let (link, number, seen) = parts.find(session, hash);
            if seen.get(session, hash, key).is_none() {
                return Ok(None);
            }
            let bucket = &mut *session.try_lock(link)?;
            if !bucket.has(hash, number) {
                return Err(Conflict::Retry);
            }
            match bucket.locate(session, hash, |of_entry| of_entry == key) {
                Some((spot, _)) => {
                    Ok(Some(bucket.remove(session, spot, |key| parts.hash_of(key))?.1))
                }
                None => Ok(None),
            }
        }
    }

    unsafe fn for_each<V: Copy, S: RawSession>(
        parts: &Directory<K, V>,
        session: &S,
        mut f: impl FnMut(&K, &V),
    ) {
        let visit = |key: &K, value: &V| {
            f(key, value);
            true
        };
        // SAFETY: the session is a snapshot of the domain to which the parts belong (contract of
        // this function).
        unsafe { parts.visit_all(session, visit) };
    }

    #[inline]
    unsafe fn has_changed<V: Copy, S: RawSession>(
        parts: &Directory<K, V>,
        handle: &mut S,
        more: &mut isize,
    ) {
        let untold = UNTOLD.min(parts.buckets().cast_signed() / 64);
        if more.unsigned_abs() > untold.unsigned_abs() {
            let told = core::mem::take(more);
            parts.count(told);
            // SAFETY: the handle is in no session, and one of the domain to which the parts belong
            // (contract of this function).
            unsafe { parts.grow(handle, told) };
        }
    }
}
