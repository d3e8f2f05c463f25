//! Entries of a bucket that a session has locked: they are found, replaced and removed by their
//! positions.

use core::hash::Hash;
use core::ptr::null_mut;

use super::{Bucket, Entry};
use crate::session::{Conflict, Link, RawSession};

/// The location of an entry in a bucket that a session has locked.
pub enum Spot<K, V> {
    Here(usize),
    InChain(Link<Entry<K, V>>),
}

impl<K: Copy, V: Copy> Bucket<K, V> {
    /// Where that entry is, and its value.
    ///
    /// # Safety
    ///
    /// In a session in which the bucket was found.
    pub unsafe fn locate<S: RawSession>(
        &self,
        session: &S,
        hash: usize,
        is: impl Fn(&K) -> bool,
    ) -> Option<(Spot<K, V>, V)> {
        if let Some(index) = self.position(hash, &is) {
            return Some((Spot::Here(index), self.entries()[index].1));
        }
        // SAFETY: the bucket was found in this session (contract of this function).
        let found = unsafe { self.find_in_chain(session, is) };
        found.map(|(link, entry)| (Spot::InChain(link), entry.value))
    }

    /// Gives an entry another value.
    ///
    /// # Safety
    ///
    /// To be called in the session that has locked the bucket: it is the copy in which the entry
    /// was located.
    pub unsafe fn replace<S: RawSession>(
        &mut self,
        session: &mut S,
        spot: Spot<K, V>,
        value: V,
    ) -> Result<(), Conflict> {
        match spot {
            // SAFETY: the index belongs to one of the entries, which are within the words.
            Spot::Here(index) => unsafe { (*self.at_mut(index)).1 = value },
            // SAFETY: the session has found the entry in the bucket's chain, which stays until the
            // session's end.
            Spot::InChain(link) => unsafe { (*session.try_lock(link)?).value = value },
        }
        Ok(())
    }

    /// Gives an entry another key with the same hash.
    ///
    /// # Safety
    ///
    /// As for [`replace`](Self::replace).
    #[cfg(not(loom))]
    pub unsafe fn replace_key<S: RawSession>(
        &mut self,
        session: &mut S,
        spot: Spot<K, V>,
        key: K,
    ) -> Result<(), Conflict> {
        match spot {
            // SAFETY: the index belongs to one of the entries, which are within the words.
            Spot::Here(index) => unsafe { (*self.at_mut(index)).0 = key },
            // SAFETY: the session has found the entry in the bucket's chain, which stays until the
            // session's end.
            Spot::InChain(link) => unsafe { (*session.try_lock(link)?).key = key },
        }
        Ok(())
    }

    /// Locks the objects that replacing and removing these entries may need, so that the changes
    /// themselves meet no conflict.
    ///
    /// # Safety
    ///
    /// In a session that has locked the bucket.
    #[cfg(not(loom))]
    pub unsafe fn lock_chain<S: RawSession>(
        &self,
        session: &mut S,
        count: usize,
        mut is_among: impl FnMut(&K) -> bool,
    ) -> Result<(), Conflict> {
        let (mut next, mut before) = (self.more, 0);
        while !next.is_null() {
            // SAFETY: the bucket was found in this session (contract of this function), and so is
            // the link: the entry stays until the session's end.
            unsafe {
                let entry = &*session.deref(next);
                let link = core::mem::replace(&mut next, entry.next);
                if before < count || is_among(&entry.key) {
                    session.try_lock_const(link)?;
                }
            }
            before += 1;
        }
        Ok(())
    }

    /// Removes up to this many entries from the chain, and passes each to the function. Returns
    /// whether there are more.
    ///
    /// # Safety
    ///
    /// As for [`replace`](Self::replace).
    pub unsafe fn cut_chain<S: RawSession>(
        &mut self,
        session: &mut S,
        most: usize,
        mut f: impl FnMut(&mut S, K, V) -> Result<(), Conflict>,
    ) -> Result<bool, Conflict> {
        for _ in 0..most {
            if self.more.is_null() {
                break;
            }
            // SAFETY: the bucket is this session's copy (contract of this function). After the
            // commit nothing leads to the entry: the link to it was in this copy.
            unsafe {
                let Entry { next, key, value } = *session.deref(self.more);
                session.free(self.more)?;
                self.more = next;
                f(session, key, value)?;
            }
        }
        Ok(!self.more.is_null())
    }
}

impl<K: Copy + Hash, V: Copy> Bucket<K, V> {
    /// Takes an entry out; returns it.
    ///
    /// # Safety
    ///
    /// As for [`replace`](Self::replace).
    pub unsafe fn remove<S: RawSession>(
        &mut self,
        session: &mut S,
        spot: Spot<K, V>,
        hash_of: impl Fn(&K) -> usize,
    ) -> Result<(K, V), Conflict> {
        // SAFETY: the bucket is this session's copy (contract of this function), whose chain the
        // session finds: its entries stay until the session's end. Both `index` and the last index
        // are among the written entries.
        unsafe {
            let index = match spot {
                Spot::Here(index) => index,
                Spot::InChain(link) => {
                    let Entry { key, value, .. } = *session.deref(link);
                    self.unchain(session, link)?;
                    return Ok((key, value));
                }
            };
            let old = self.entries()[index];
            // An entry of the chain takes the removed entry's place. Steps that may fail, or panic,
            // come first.
            let moved = (!self.more.is_null()).then(|| {
                let Entry { key, value, .. } = *session.deref(self.more);
                (hash_of(&key), key, value)
            });
            if moved.is_some() {
                self.unchain(session, self.more)?;
            }
            self.length -= 1;
            let last = *self.at(usize::from(self.length));
            self.at_mut(index).write(last);
            self.tags.take(index, usize::from(self.length));
            if let Some((hash, key, value)) = moved {
                self.add(session, hash, key, value);
            }
            Ok(old)
        }
    }

    /// Removes an entry from the chain: the first one gets its place. If this fails, nothing has
    /// changed.
    ///
    /// # Safety
    ///
    /// As for [`replace`](Self::replace).
    unsafe fn unchain<S: RawSession>(
        &mut self,
        session: &mut S,
        entry: Link<Entry<K, V>>,
    ) -> Result<(), Conflict> {
        // SAFETY: the bucket is this session's copy (contract of this function), whose chain the
        // session finds: its entries stay until the session's end. After the commit nothing leads
        // to the freed entry: the link to it was in this copy.
        unsafe {
            let first = self.more;
            let Entry { next, key, value } = *session.deref(first);
            let place = if entry == first { null_mut() } else { session.try_lock(entry)? };
            session.free(first)?;
            self.more = next;
            if let Some(place) = place.as_mut() {
                (place.key, place.value) = (key, value);
            }
            Ok(())
        }
    }
}
