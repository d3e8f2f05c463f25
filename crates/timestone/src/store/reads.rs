//! The reads of a transaction, if they have to be unchanged when it commits.

use std::cell::RefCell;

use manycore::session::{Conflict, Link, RawSession};

use super::domain::Handle;
use crate::heap::Heap;
use crate::heap::words::with_words;

/// The read objects, each with its words; `None` if the transaction does not need them.
#[derive(Default)]
pub struct Reads {
    is_wanted: bool,
    objects: RefCell<Vec<(u64, usize)>>,
}

impl Reads {
    /// Starts again, for a transaction that begins now.
    pub fn begin(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
        self.objects.get_mut().clear();
    }

    /// The transaction depends on all words of this object.
    #[inline]
    pub fn note(&self, place: u64, words: usize) {
        if self.is_wanted {
            self.objects.borrow_mut().push((place, words));
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.borrow().is_empty()
    }

    /// Locks all objects: they are as the session has read them, and stay so until it ends.
    ///
    /// # Safety
    ///
    /// The session is open, and has found the objects, each with its number of words.
    pub unsafe fn lock(&mut self, handle: &mut Handle<'_>, heap: &Heap) -> Result<(), Conflict> {
        let objects = self.objects.get_mut();
        // In one order, so that of two transactions one gets further.
        objects.sort_unstable();
        objects.dedup();
        for (place, words) in objects.iter() {
            let locked = with_words!(*words, |W| {
                let link: Link<W> = heap.link(*place);
                // SAFETY: the session is open and has found the object, as the caller ensures.
                unsafe { handle.try_lock_const(link) }
            });
            match locked {
                // What the transaction has ended itself.
                Ok(()) | Err(Conflict::Freed) => {}
                Err(conflict) => return Err(conflict),
            }
        }
        Ok(())
    }
}
