//! A map of byte strings, for records to which a program gives no type, as in stores and caches.
//!
//! ```
//! use manycore::collections::bytes::ByteMap;
//!
//! let map = <ByteMap>::default();
//! let mut me = map.handle();
//! me.set(b"apples", b"3")?;
//! assert_eq!(me.get(b"apples", |value| value.to_vec()).as_deref(), Some(&b"3"[..]));
//!
//! // What becomes of a record is decided while no other thread changes it.
//! let mut apples = me.lock_for(b"apples")?;
//! if apples.value() == Some(b"3") {
//!     apples.put(b"4")?;
//! }
//! apples.commit();
//!
//! // All of it, or nothing.
//! me.begin()?;
//! me.set(b"pears", b"1")?;
//! me.remove(b"apples")?;
//! me.commit()?;
//! assert_eq!(map.len(), 1);
//! # Ok::<(), manycore::collections::bytes::Error>(())
//! ```
//!
//! # Idea
//!
//! It is the [growing table](super::hash::MvrluGrowingTable) with a pair of byte strings for each
//! key: a bucket has up to twelve pairs, with a byte of each pair's hash. A pair is one object that
//! is written once. So a look-up reads the bucket and one pair, and writes nothing.
//!
//! A change locks the bucket, the pair to be removed, and the other objects that it may need. Only
//! then it asks the caller for the record's new value. After that it cannot meet a conflict. So the
//! caller's function runs once, and may do things that cannot be repeated.
//!
//! # Which threads exclude which
//!
//! Readers and writers do not exclude each other. If several threads change the same bucket, one
//! goes first. [`Handle::begin`] and [`Handle::keep_others_out`] exclude all other writers by a
//! gate, which readers do not use; a thread that changes one record passes the gate by a count on
//! its own CPU's line.
//!
//! # Order
//!
//! The order of records is by their hashes, read from the lowest bit on, and then by their keys. It
//! stays the same while the table grows. [`Handle::next`] uses it: a thread that repeatedly asks
//! for the key after the last one visits every record once that stays in the table.
//!
//! # Source
//!
//! The order is that of O. Shalev and N. Shavit, "Split-ordered lists: lock-free extensible hash
//! tables", JACM 2006.
//!
//! # Memory order
//!
//! [`mvrlu`](crate::mvrlu) orders the objects that sessions find, the table's
//! [directory](super::hash::MvrluGrowingTable) orders its buckets, and the
//! [lock](crate::lock::PerCpuRw) orders threads that pass the gate. Counts of records are
//! statistics.
//!
//! # Cost
//!
//! A look-up is a session for the latest versions. It reads one or two lines of the bucket and one
//! of the pair, and writes nothing that others read. A change makes versions of the bucket and of
//! the removed pair, allocates an object, and passes the gate, by two read-modify-writes of its own
//! CPU's line. Memory: a pair of 8 and 8 bytes takes 32, and its share of a bucket some 20.
//!
//! # When not to use it
//!
//! For keys or values of one type, which [`space`](super::space) stores with less memory. For
//! records that are changed in place, a byte at a time: each change writes the whole record. The
//! table never shrinks, except by [`Handle::clear`].

mod edit;
mod error;
mod handle;
mod locked;
mod order;
mod state;
mod table;
mod tally;
mod transaction;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem::ManuallyDrop;

use foldhash::fast::SeedableRandomState;

use super::versioned::create;
use crate::clock::{Clock, Ordo};
use crate::lock::PerCpuRw;
use crate::mvrlu::{Config, Domain};
use crate::session::{Link, Open, RawSession, View};
pub use error::Error;
pub use handle::Handle;
pub use locked::{Locked, LockedAll};
pub use order::From;
use table::{Root, Table, new_table};
use tally::Tally;

/// A map from byte strings to byte strings.
pub struct ByteMap<C: Clock = Ordo> {
    /// This field is dropped before the table, because it has versions of the table's buckets.
    domain: ManuallyDrop<Domain<C>>,
    root: Link<Root>,
    hasher: SeedableRandomState,
    /// The number of records for which a new table has room.
    room: usize,
    /// A thread that changes records acquires it for reading; a thread that excludes others
    /// acquires it for writing.
    gate: Box<PerCpuRw>,
    tally: Tally,
}

/// Segments of a log: one transaction, or the writes during a long snapshot, may take up to 64 MiB.
const SEGMENTS_MAX: usize = 4096;

impl<C: Clock + Default> Default for ByteMap<C> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<C: Clock + Default> ByteMap<C> {
    /// Creates an empty map, with room for this many records before it has to grow.
    #[must_use]
    pub fn with_room(records: usize) -> Self {
        let config = Config::default().with_segments_max(SEGMENTS_MAX);
        Self::new(C::default(), config, records)
    }
}

impl<C: Clock> ByteMap<C> {
    /// Creates an empty map, with a clock, limits, and room for this many records before it has to
    /// grow.
    ///
    /// # Panics
    ///
    /// If the limits contradict each other: see [`Config`].
    pub fn new(clock: C, config: Config, records: usize) -> Self {
        Self::with_hasher(clock, config, records, SeedableRandomState::random())
    }

    /// Creates a map whose hashes repeat in each run, for tests. An attacker who chooses the keys
    /// can make them collide.
    ///
    /// # Panics
    ///
    /// As of [`new`](Self::new).
    pub fn with_fixed_hashes(clock: C, config: Config, records: usize) -> Self {
        Self::with_hasher(clock, config, records, SeedableRandomState::fixed())
    }

    fn with_hasher(clock: C, config: Config, records: usize, hasher: SeedableRandomState) -> Self {
        let domain = Domain::new(clock, config);
        let table = new_table(records, hasher.clone());
        let root = create(&mut domain.register(), Root { table });
        Self {
            domain: ManuallyDrop::new(domain),
            root,
            hasher,
            room: records,
            gate: Box::default(),
            tally: Tally::new(),
        }
    }

    /// The calling thread's handle. A thread should have only one: with two, it may wait for
    /// itself.
    pub fn handle(&self) -> Handle<'_, C> {
        Handle::new(self)
    }

    /// The number of records. It is exact if no thread changes any; otherwise it includes some of
    /// the concurrent changes.
    pub fn len(&self) -> usize {
        self.tally.records()
    }

    /// Whether there is no record: as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all keys and values: as [`len`](Self::len).
    pub fn bytes(&self) -> usize {
        self.tally.bytes()
    }

    /// The domain, for its statistics and limits.
    pub fn domain(&self) -> &Domain<C> {
        &self.domain
    }
}

impl<C: Clock> Drop for ByteMap<C> {
    fn drop(&mut self) {
        let mut handle = self.domain.register();
        let open = Open::begin(&mut handle, View::Snapshot);
        let mut large = Vec::new();
        // SAFETY: `open` has begun the session, of the domain to which the root and all that it
        // leads to belong.
        let table: *const Table = unsafe {
            let table = (*open.handle.deref(self.root)).table;
            (*table).visit_all(&*open.handle, |pair, ()| {
                if pair.is_large() {
                    large.push(*pair);
                }
                true
            });
            table
        };
        open.end();
        // SAFETY: no other thread has the map, nor its pairs; each pair is in one entry.
        large.into_iter().for_each(|pair| unsafe { handle.end_pair(pair) });
        handle.end_dying();
        drop(handle);
        // SAFETY: `drop` runs once, and nothing uses the domain after it. The table is from a box,
        // and no thread has it when the domain is gone.
        unsafe {
            ManuallyDrop::drop(&mut self.domain);
            drop(Box::from_raw(table.cast_mut()));
        }
    }
}

impl<C: Clock> fmt::Debug for ByteMap<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteMap").field("len", &self.len()).finish_non_exhaustive()
    }
}
