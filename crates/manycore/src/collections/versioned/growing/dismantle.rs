//! Frees an unused table, in a domain that remains in use.

use alloc::boxed::Box;

use super::{CHAINED, Directory};
use crate::session::{self, Conflict, RawSession, View};

impl<K, V, H> Directory<K, V, H>
where
    K: Copy + Send + Sync + 'static,
    V: Copy + Send + Sync + 'static,
    H: Send + Sync + 'static,
{
    /// Frees the contents of entries, in as many transactions as necessary, of a table that no
    /// session will find any more. The table's memory contains the buckets, and threads' logs may
    /// have versions of them. So that memory is given to the domain, which frees it when no thread
    /// uses it any more.
    ///
    /// # Safety
    ///
    /// The handle is in no session, and belongs to the buckets' domain. `free` frees an entry's
    /// contents.
    pub(in crate::collections) unsafe fn dismantle<S: RawSession>(
        table: Box<Self>,
        handle: &mut S,
        free: impl Fn(&mut S, K, V) -> Result<(), Conflict>,
    ) {
        for place in table.places() {
            let mut is_cut = false;
            while !is_cut {
                // SAFETY: `retry` has begun the session; buckets stay as long as their memory.
                // `try_lock` returns this session's copy.
                is_cut = session::retry(handle, View::Latest, |session| unsafe {
                    if (*session.deref(place)).has_no_chain() {
                        return Ok(true);
                    }
                    let bucket = &mut *session.try_lock(place)?;
                    Ok(!bucket.cut_chain(session, CHAINED, &free)?)
                });
            }
            // SAFETY: `retry` has begun the session; the memory stays until the table is dropped,
            // which happens below.
            session::retry(handle, View::Latest, |session| unsafe {
                let bucket = *session.deref(place);
                session.free_in_place(place)?;
                bucket.entries().iter().try_for_each(|(key, value)| free(session, *key, *value))
            });
        }
        let table = handle.make_owned(table);
        // SAFETY: `retry` has begun the session; the object was made in the line above, and no
        // other thread has a link to it.
        session::retry(handle, View::Latest, |session| unsafe { session.free_owned(table) });
    }
}
