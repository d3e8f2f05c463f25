//! Records that no other thread changes, and the decisions about them.

use alloc::vec::Vec;
use core::fmt;

use super::edit::{Edit, Slot, Then, Wanted};
use super::error::Error;
use super::handle::Handle;
use super::table::hash_of;
use crate::clock::{Clock, Ordo};

impl<'m, C: Clock> Handle<'m, C> {
    /// Gives the key a value; returns whether it had one.
    ///
    /// # Errors
    ///
    /// If the key or the value is too long, or the transaction has failed. All methods that change
    /// something fail in these cases.
    #[inline]
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let mut locked = self.lock_for(key)?;
        let had = locked.value().is_some();
        locked.put(value)?;
        locked.commit();
        Ok(had)
    }

    /// Takes the record out; returns whether it was there.
    ///
    /// # Errors
    ///
    /// As of [`set`](Self::set).
    #[inline]
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, Error> {
        let mut locked = Locked::lock(self, key, Wanted::IfThere)?;
        let had = locked.value().is_some();
        locked.remove();
        locked.commit();
        Ok(had)
    }

    /// Locks the key's record, or its position if there is none. Until the result is committed or
    /// dropped, no other thread changes the record; other threads read its old value.
    ///
    /// # Errors
    ///
    /// As of [`set`](Self::set).
    #[inline]
    pub fn lock_for<'k>(&mut self, key: &'k [u8]) -> Result<Locked<'_, 'm, 'k, C>, Error> {
        Locked::lock(self, key, Wanted::Always)
    }

    /// Locks the records of all these keys, which may contain duplicates, to change all of them at
    /// one moment.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set). Also if there are too many records for a log: with the default
    /// log that is some hundred thousand.
    pub fn lock_all<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<LockedAll<'_, 'm, 'k, C>, Error> {
        LockedAll::lock(self, keys)
    }
}

/// A record that no other thread changes, or the position of a record that does not exist: see
/// [`Handle::lock_for`]. Dropping this without a commit changes nothing.
#[must_use = "nothing happens before it is committed"]
pub struct Locked<'h, 'm, 'k, C: Clock = Ordo>(Edit<'h, 'm, C, [Slot<'k>; 1]>);

/// Does the same as [`Locked`], for several records: see [`Handle::lock_all`]. Records are numbered
/// by their keys' positions; a repeated key is one record.
#[must_use = "nothing happens before it is committed"]
pub struct LockedAll<'h, 'm, 'k, C: Clock = Ordo>(Edit<'h, 'm, C, Vec<Slot<'k>>>);

impl<'h, 'm, 'k, C: Clock> Locked<'h, 'm, 'k, C> {
    #[inline]
    pub(super) fn lock(
        handle: &'h mut Handle<'m, C>,
        key: &'k [u8],
        wanted: Wanted,
    ) -> Result<Self, Error> {
        let slot = Slot::new(key, hash_of(&handle.map.hasher, key));
        Edit::lock(handle, [slot], wanted).map(Self)
    }

    /// The record's value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        self.0.value(0)
    }

    /// Puts a value into the record.
    ///
    /// # Errors
    ///
    /// If that is too long.
    #[inline]
    pub fn put(&mut self, value: &[u8]) -> Result<(), Error> {
        self.0.put(0, value)
    }

    /// Removes the record, if there is one.
    #[inline]
    pub fn remove(&mut self) {
        self.0.then(0, Then::Remove);
    }

    /// Commits: others see the last decision.
    #[inline]
    pub fn commit(self) {
        self.0.commit();
    }
}

impl<'h, 'm, 'k, C: Clock> LockedAll<'h, 'm, 'k, C> {
    pub(super) fn lock(
        handle: &'h mut Handle<'m, C>,
        keys: impl IntoIterator<Item = &'k [u8]>,
    ) -> Result<Self, Error> {
        let hasher = &handle.map.hasher;
        let mut slots: Vec<_> =
            keys.into_iter().map(|key| Slot::new(key, hash_of(hasher, key))).collect();
        let mut order: Vec<_> = (0..slots.len()).collect();
        order.sort_by_key(|&index| (slots[index].hash, slots[index].key, index));
        let mut first = 0;
        for pair in order.windows(2) {
            if slots[pair[0]].key != slots[pair[1]].key {
                first = 0;
                continue;
            }
            // One more than the number of the first slot with this key.
            first = if first == 0 { pair[0] + 1 } else { first };
            slots[pair[1]].same = Some(first - 1);
        }
        Edit::lock(handle, slots, Wanted::Always).map(Self)
    }

    /// A record's value.
    ///
    /// # Panics
    ///
    /// If there is no key with this number: so do all methods.
    #[must_use]
    pub fn value(&self, index: usize) -> Option<&[u8]> {
        self.0.value(index)
    }

    /// Puts a value into the record.
    ///
    /// # Errors
    ///
    /// If that is too long.
    pub fn put(&mut self, index: usize, value: &[u8]) -> Result<(), Error> {
        self.0.put(index, value)
    }

    /// Removes the record, if there is one.
    pub fn remove(&mut self, index: usize) {
        self.0.then(index, Then::Remove);
    }

    /// Commits: other threads see the last decision about each record, all at one moment.
    pub fn commit(self) {
        self.0.commit();
    }
}

impl<C: Clock> fmt::Debug for Locked<'_, '_, '_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").field("value", &self.value()).finish_non_exhaustive()
    }
}

opaque! { [C: Clock] LockedAll<'_, '_, '_, C>, "LockedAll"; }
