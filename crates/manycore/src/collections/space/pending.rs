//! A key or a value that is to be put into a map.

use core::cell::Cell;
use core::mem::ManuallyDrop;

use crate::collections::versioned::{Datum, Word};
use crate::session::RawSession;

/// A value that is converted into a word when one is needed; each attempt uses the same word. If
/// this is dropped before a commit, the value is dropped, too.
pub(super) struct Pending<T: Datum> {
    /// The value. Once there is a word, the value is in that, and no thread reads it here.
    value: ManuallyDrop<T>,
    word: Cell<Option<Word<T>>>,
    /// Whether a session has it, and drops it if the session is aborted.
    is_claimed: Cell<bool>,
}

impl<T: Datum> Pending<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: ManuallyDrop::new(value),
            word: Cell::new(None),
            is_claimed: Cell::new(false),
        }
    }

    /// The value's present address: in its word's object, if there is one. It stays there until the
    /// next call of `word` that makes an object.
    pub fn get(&self) -> *const T {
        // SAFETY: no thread changes the cell meanwhile, as the references are gone when this
        // returns; the word belongs to this value, and no other code ends it.
        unsafe {
            match &*self.word.as_ptr() {
                None => &raw const *self.value,
                Some(word) => core::ptr::from_ref(word.get()),
            }
        }
    }

    /// The word of the value.
    pub fn word<S: RawSession>(&self, handle: &mut S) -> Word<T> {
        self.word.get().unwrap_or_else(|| {
            // SAFETY: the value is read out once: from the next line on there is a word, and this
            // place is not read again.
            let word = Word::new(handle, unsafe { core::ptr::read(&raw const *self.value) });
            self.word.set(Some(word));
            word
        })
    }

    /// The value's word, which belongs to the session from now on, and is dropped if the session is
    /// aborted.
    ///
    /// # Safety
    ///
    /// The caller is in a session, which has the word in a node if it commits. To be called once.
    pub unsafe fn claimed<S: RawSession>(&self, session: &mut S) -> Word<T> {
        let word = self.word(session);
        // SAFETY: `word` has made it just now; the session has it in a node if it commits (contract
        // of this function).
        unsafe { word.claim(session) };
        self.is_claimed.set(true);
        word
    }

    /// The map has it.
    pub fn release(self) {
        core::mem::forget(self);
    }

    /// No thread has it; it is the caller's again.
    pub fn take<S: RawSession>(self, handle: &mut S) -> T {
        let Some(word) = self.word.take() else {
            let mut this = ManuallyDrop::new(self);
            // SAFETY: it was not moved into a word, and its container is forgotten.
            return unsafe { ManuallyDrop::take(&mut this.value) };
        };
        core::mem::forget(self);
        // SAFETY: made by a handle of this domain, and no commit has linked it.
        unsafe { word.into_inner(handle) }
    }

    /// No thread has it.
    pub fn end<S: RawSession>(self, handle: &mut S) {
        if let Some(word) = self.word.take() {
            core::mem::forget(self);
            // SAFETY: made by a handle of this domain, and no commit has linked it.
            unsafe { word.end(handle) };
        }
    }
}

impl<T: Datum> Drop for Pending<T> {
    fn drop(&mut self) {
        match self.word.get() {
            // SAFETY: it was not moved into a word, and is dropped once.
            None => unsafe { ManuallyDrop::drop(&mut self.value) },
            Some(_) if self.is_claimed.get() => {}
            // SAFETY: after a panic: no commit has linked it, and no other code ends it. Its memory
            // belongs to the domain.
            Some(word) => unsafe { word.drop_value() },
        }
    }
}
