//! The end of objects that those who read the latest may still find.

use crate::session::{Conflict, Link, RawSession};
use crate::sync::mutation;

/// An object whose last version can say that its content is not to be read.
pub(super) trait Mortal: Copy + 'static {
    fn set_gone(&mut self);
}

/// Locks an object to free it, and returns what it had.
///
/// A thread that reads the latest, and has found the object before, reads that, too: it is what was
/// there a moment before the commit. But if this session has changed the object, the thread would
/// read what that had within the transaction, which was true at no moment. Then the object says
/// that it is gone, and the thread begins anew at what this commit has changed.
///
/// What is new in a transaction, and gone before its commit, needs no such mark: only what says
/// that it is gone leads there.
///
/// # Safety
///
/// As of [`RawSession::free`].
pub(super) unsafe fn retire<T: Mortal, S: RawSession>(
    session: &mut S,
    link: Link<T>,
) -> Result<T, Conflict> {
    // SAFETY: session and object are there (contract of this function); the copy is this session's.
    unsafe {
        let seen = session.deref(link);
        let copy = session.try_lock(link)?;
        let old = *copy;
        // A session that has changed an object sees its own copy.
        if core::ptr::eq(seen, copy) && !mutation!("mvrlu-freed-changed") {
            (*copy).set_gone();
        }
        session.free(link)?;
        Ok(old)
    }
}
