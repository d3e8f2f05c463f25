//! The table of pairs, and what leads to it.

use alloc::boxed::Box;
use core::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::SeedableRandomState;

use crate::collections::versioned::{Bucket, Directory};
use crate::mvrlu::Pair;
use crate::session::{Link, RawSession};

/// Buckets of pairs.
pub(super) type Table = Directory<Pair, (), SeedableRandomState>;

/// The object that leads to the table. Each session sees its version of that moment.
#[derive(Clone, Copy)]
pub(super) struct Root {
    pub table: *const Table,
}

/// The number of pairs for each bucket at which the table gets more buckets.
const LOAD: usize = Bucket::<Pair, ()>::ROOM / 2;

/// Makes an empty table with buckets for this many records, in a box that the caller owns.
pub(super) fn new_table(records: usize, hasher: SeedableRandomState) -> *const Table {
    let first = (records / LOAD).max(1).next_power_of_two();
    Box::into_raw(Box::new(Table::new(first, LOAD, hasher)))
}

/// A key that has the hash of its pair.
struct Key<'k>(&'k [u8]);

impl Hash for Key<'_> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0);
    }
}

#[inline]
pub(super) fn hash_of(hasher: &SeedableRandomState, key: &[u8]) -> usize {
    hasher.hash_one(Key(key)) as usize
}

/// Whether a pair is the key's.
#[inline]
pub(super) fn is(key: &[u8]) -> impl Fn(&Pair) -> bool {
    // SAFETY: the caller passes pairs of a bucket that it has found in its session, and a pair
    // lives as long as the session.
    move |pair| unsafe { pair.get() }.0 == key
}

/// The table that the session sees.
///
/// # Safety
///
/// In a session of the domain to which the root belongs.
#[inline]
pub(super) unsafe fn table<S: RawSession>(session: &S, root: Link<Root>) -> &Table {
    // SAFETY: the root lives as long as its domain. A table is freed by the thread that has removed
    // it from the root, when no session is open that may have found it.
    unsafe { &*(*session.deref(root)).table }
}
