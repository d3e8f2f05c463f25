//! Collections that share a domain: snapshots and transactions over several of them.
//!
//! ```
//! use manycore::collections::space::{BTreeMap, HashMap, Space};
//!
//! let space = <Space>::default();
//! let accounts = BTreeMap::<u64, i64>::new_in(&space);
//! let names = HashMap::<String, u64>::new_in(&space);
//! accounts.insert(7, 100);
//! accounts.insert(8, 0);
//! names.insert("savings".into(), 8);
//!
//! // All of it, or nothing.
//! space.transact(|tx| {
//!     let to = *tx.get(&names, "savings").expect("it was put in");
//!     let from = *tx.get(&accounts, &7).unwrap_or(&0);
//!     let other = *tx.get(&accounts, &to).unwrap_or(&0);
//!     tx.insert(&accounts, 7, from - 30)?;
//!     tx.insert(&accounts, to, other + 30)?;
//!     tx.remove(&names, "nobody")
//! });
//!
//! // One moment of all collections, from either end, for as long as one likes.
//! let sum: i64 = space.snapshot(|now| now.iter(&accounts).rev().map(|(_, value)| value).sum());
//! assert_eq!(sum, 100);
//! ```
//!
//! # Handles
//!
//! A thread with many operations keeps a [handle](Space::handle), and passes it to a map by
//! [`Map::by`]. Without a handle, each call borrows one that the space keeps for the CPU. That
//! costs some ten nanoseconds, and also works in a future between two awaits, since no state is
//! kept from one call to the next.
//!
//! # Keys and values
//!
//! Any types that are `Send + Sync + 'static`. Numbers are stored in the nodes. Any other value is
//! an object of its own, which never changes. Any thread drops it, once, when no session is open
//! that may have found it. Destructors run outside of sessions and may use the collections. `Ord`,
//! `Hash` and closures run in a session: they may read other spaces' collections, and should not
//! wait for another thread.

mod access;
mod art;
mod direct;
mod entry;
mod handle;
mod identity;
mod map;
mod pending;
mod registered;
mod snapshot;
mod transaction;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

pub use crate::collections::versioned::art::ArtKey;
use crate::mvrlu;
use crate::per_cpu::PerCpu;
use crate::session::{Conflict, RawSession, Sessions};
pub use access::Access;
pub use entry::{Entry, Modified, Upsert};
pub use handle::{GaveUp, Handle, Limit};
pub use map::{ArtMap, BTreeMap, HashMap, Map};
pub use registered::Registered;
pub use snapshot::Snapshot;
pub use transaction::Transaction;

/// A domain that collections share. A clone is the same space.
pub struct Space<M: Sessions + 'static = mvrlu::Domain>(Arc<Shared<M>>);

struct Shared<M: Sessions + 'static> {
    /// Refer to the domain, which goes after them.
    handles: PerCpu<Handle<'static, M>>,
    /// From a box.
    domain: NonNull<M>,
}

// SAFETY: the domain is `Send` and `Sync`, as all `Sessions`; `PerCpu` lends handles to one thread
// at a time.
unsafe impl<M: Sessions> Send for Shared<M> {}
// SAFETY: the domain is `Sync`, as all `Sessions`; `PerCpu` lends handles to one thread at a time.
unsafe impl<M: Sessions> Sync for Shared<M> {}

impl<M: Sessions> Drop for Shared<M> {
    fn drop(&mut self) {
        self.handles.clear();
        // SAFETY: the pointer comes from `Box::leak` in `Space::new`, and the handles that refer to
        // it are dropped; others borrow the space.
        drop(unsafe { Box::from_raw(self.domain.as_ptr()) });
    }
}

impl<M: Sessions> Clone for Space<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Sessions + Default> Default for Space<M> {
    fn default() -> Self {
        Self::new(M::default())
    }
}

impl<M: Sessions + 'static> Space<M> {
    /// Creates one with a domain, which has nothing else.
    pub fn new(domain: M) -> Self {
        let domain = NonNull::from(Box::leak(Box::new(domain)));
        // SAFETY: a handle in no session may go to another thread once `adopt` was called; its
        // private state is in its record, which passes from thread to thread in any case.
        let handles = unsafe { PerCpu::new() };
        Self(Arc::new(Shared { handles, domain }))
    }

    /// The domain, for its statistics and limits.
    #[must_use]
    pub fn domain(&self) -> &M {
        // SAFETY: the box is freed with `Shared`, which this borrows.
        unsafe { self.0.domain.as_ref() }
    }

    /// The calling thread's access, for threads with many operations. A thread should have only
    /// one; with RLU a thread with two waits for itself.
    #[must_use]
    pub fn handle(&self) -> Handle<'_, M> {
        Handle::new(self.domain())
    }

    /// Runs `f` with a handle that the space keeps.
    pub fn with<R>(&self, f: impl FnOnce(&mut Handle<'_, M>) -> R) -> R {
        // SAFETY: the box is freed with `Shared`, after the handles.
        let domain: &'static M = unsafe { self.0.domain.as_ref() };
        self.0.handles.with(
            || Handle::new(domain),
            |handle| {
                handle.raw.adopt();
                f(handle)
            },
        )
    }

    /// Reads any collections as they are at one moment: see [`Handle::snapshot`].
    pub fn snapshot<R>(&self, f: impl FnOnce(&Snapshot<'_, '_, M>) -> R) -> R {
        self.with(|me| me.snapshot(f))
    }

    /// Reads and changes any collections; others see all of the changes or none: see
    /// [`Handle::transact`].
    pub fn transact<'m, R>(
        &self,
        f: impl FnMut(&mut Transaction<'_, '_, 'm, M>) -> Result<R, Conflict>,
    ) -> R {
        self.with(|me| me.transact(f))
    }

    /// The same, once: see [`Handle::attempt`].
    ///
    /// # Errors
    ///
    /// If there is a conflict.
    pub fn attempt<'m, R>(
        &self,
        f: impl FnOnce(&mut Transaction<'_, '_, 'm, M>) -> Result<R, Conflict>,
    ) -> Result<R, Conflict> {
        self.with(|me| me.attempt(f))
    }

    /// The same, within a limit: see [`Handle::transact_with`].
    ///
    /// # Errors
    ///
    /// If there were as many conflicts as the limit allows attempts.
    pub fn transact_with<'m, R>(
        &self,
        limit: Limit,
        f: impl FnMut(&mut Transaction<'_, '_, 'm, M>) -> Result<R, Conflict>,
    ) -> Result<R, GaveUp> {
        self.with(|me| me.transact_with(limit, f))
    }

    /// Whether no other thread has it.
    fn is_unique(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

opaque! { [M: Sessions] Space<M>, "Space"; }
