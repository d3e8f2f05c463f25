//! Structures of the program's own: objects that lead to each other.

use zerocopy::IntoBytes;

use super::catalog;
use super::member::Member;
use super::pointer::{Ptr, typed_mut};
use super::transaction::sealed::Objects;
use super::transaction::{Stop, Transaction};
use crate::Persist;
use crate::error::Result;
use crate::heap::words::WORDS_MAX;

impl Transaction<'_, '_> {
    /// Creates an object. It exists once the transaction has committed, provided that the
    /// transaction also changes another object, usually the one that leads to it. It stays until it
    /// is [freed](Self::free).
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if the heap is.
    pub fn alloc<T: Persist>(&mut self, value: T) -> Result<Ptr<T>, Stop> {
        mark(self)?;
        let mut words = [0; WORDS_MAX];
        let words = &mut words[..Ptr::<T>::WORDS];
        words.as_mut_bytes()[..size_of::<T>()].copy_from_slice(value.as_bytes());
        self.allocate(words).map(Ptr::at)
    }

    /// Locks an object to change it. Other threads see the change when the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    ///
    /// # Panics
    ///
    /// If the pointer leads to no object of this size.
    #[inline]
    #[track_caller]
    pub fn lock<T: Persist>(&mut self, ptr: Ptr<T>) -> Result<&mut T, Stop> {
        let place = ptr.place(|place, words| self.has_object(place, words));
        let words = self.lock_words(place, Ptr::<T>::WORDS)?;
        Ok(typed_mut(words))
    }

    /// Locks an object that the transaction reads and does not change. The transaction then commits
    /// only if no other one changes the object before. Use it for some objects of a transaction
    /// with [`Isolation::Snapshot`](super::Isolation::Snapshot); the other levels do it for all.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    ///
    /// # Panics
    ///
    /// If the pointer leads to no object of this size.
    #[track_caller]
    pub fn lock_const<T: Persist>(&mut self, ptr: Ptr<T>) -> Result<(), Stop> {
        let place = ptr.place(|place, words| self.has_object(place, words));
        self.lock_words_const(place, Ptr::<T>::WORDS)
    }

    /// The object ends with the commit.
    ///
    /// # Errors
    ///
    /// [`Stop::Conflict`], which is for [`Member::run`].
    ///
    /// # Panics
    ///
    /// If the pointer leads to no object of this size.
    ///
    /// # Safety
    ///
    /// Sessions that begin after the transaction's commit use no pointer to the object: neither one
    /// in an object, nor one that the program has kept. Another object may then have the same
    /// address.
    #[track_caller]
    pub unsafe fn free<T: Persist>(&mut self, ptr: Ptr<T>) -> Result<(), Stop> {
        let place = ptr.place(|place, words| self.has_object(place, words));
        self.free_words(place, Ptr::<T>::WORDS)
    }
}

/// Records in the catalog, before the first object is created, that there are objects of the
/// program's own: the store does not know which of their words lead to others, or which words of a
/// map's values lead to them.
pub fn mark(tx: &mut Transaction<'_, '_>) -> Result<(), Stop> {
    if tx.needs_mark() {
        catalog::root(tx, "own objects", "objects of the program's own", &[0])?;
        tx.set_marked();
    }
    Ok(())
}

/// The schema of an object of this type in the catalog.
pub fn schema<T>() -> String {
    schema_of(&catalog::type_text::<T>())
}

/// The schema of an object whose type has this name in the catalog.
pub fn schema_of(type_text: &str) -> String {
    format!("an object of {type_text}")
}

/// The object of this name. If it does not exist, it is created with zeros.
pub fn open_root<T: Persist>(member: &mut Member<'_>, name: &str) -> Result<Ptr<T>> {
    let zeros = vec![0; Ptr::<T>::WORDS];
    member.run(|tx| catalog::root(tx, name, &schema::<T>(), &zeros)).map(Ptr::at)
}
