//! A map of byte strings, for records that a program has not given a type: what stores and caches
//! keep.
//!
//! ```
//! use manycore::collections::bytes::ByteMap;
//!
//! let map = <ByteMap>::default();
//! let mut me = map.handle();
//! me.set(b"apples", b"3")?;
//! assert_eq!(me.get(b"apples", |value| value.to_vec()).as_deref(), Some(&b"3"[..]));
//!
//! // What becomes of a record is decided while nobody else changes it.
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
//! key: a bucket has up to twelve pairs, and a byte of each one's hash, and a pair is one object
//! that is written once. So a look-up reads the bucket and one pair, and changes nothing.
//!
//! A change locks the bucket, the pair that goes, and what else it may take, and only then asks the
//! caller what becomes of the record. After that it cannot meet a conflict: the caller is asked
//! once, and may do what cannot be done twice.
//!
//! # Who keeps out whom
//!
//! Readers keep out nobody, and nobody keeps them out. Of threads that change the same bucket, one
//! goes first. [`Handle::begin`] and [`Handle::keep_others_out`] keep out all other threads that
//! change something, by a gate that readers do not know; a thread that changes one record passes it
//! by a count on its own CPU's line.
//!
//! # Order
//!
//! Records have one, by their hashes read from the lowest bit on, and by their keys: it stays as it
//! is while the table grows. [`Handle::next`] goes by it: a thread that asks for what follows a key
//! comes to every record once that is there all the time.
//!
//! # Source
//!
//! The order is that of O. Shalev and N. Shavit, "Split-ordered lists: lock-free extensible hash
//! tables", JACM 2006.
//!
//! # Memory order
//!
//! What sessions find is ordered by [`mvrlu`](crate::mvrlu), the table by its
//! [directory](super::hash::MvrluGrowingTable), and a thread that passes the gate by the
//! [lock](crate::lock::PerCpuRw). Counts of records are statistics.
//!
//! # Cost
//!
//! A look-up is a session for the latest, a line or two of the bucket, and one of the pair: it
//! writes nothing that others read. A change takes versions of the bucket and of the pair that
//! goes, an object, and the gate: two read-modify-writes of the CPU's own line. Memory: a pair of 8
//! bytes each takes 32, and its share of a bucket some 20.
//!
//! # When not to use it
//!
//! For keys or values of one type, which [`space`](super::space) has with less. Where a record is
//! changed in place, a byte at a time: each change writes all of it anew. The table never shrinks,
//! but by [`Handle::clear`].

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
    /// Dropped before the table, of whose buckets it has versions.
    domain: ManuallyDrop<Domain<C>>,
    root: Link<Root>,
    hasher: SeedableRandomState,
    /// How many records there are to have room for at first.
    room: usize,
    /// Read by the thread that changes records, written by the thread that keeps those out.
    gate: Box<PerCpuRw>,
    tally: Tally,
}

/// Segments of a log: a transaction, or what is written beside a long snapshot, takes up to 64 MiB.
const SEGMENTS_MAX: usize = 4096;

impl<C: Clock + Default> Default for ByteMap<C> {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl<C: Clock + Default> ByteMap<C> {
    /// Empty, with room for this many records before it has to grow.
    #[must_use]
    pub fn with_room(records: usize) -> Self {
        let config = Config::default().with_segments_max(SEGMENTS_MAX);
        Self::new(C::default(), config, records)
    }
}

impl<C: Clock> ByteMap<C> {
    /// Empty, with a clock, limits, and room for this many records before it has to grow.
    ///
    /// # Panics
    ///
    /// If the limits contradict each other: see [`Config`].
    pub fn new(clock: C, config: Config, records: usize) -> Self {
        Self::with_hasher(clock, config, records, SeedableRandomState::random())
    }

    /// The same with hashes that are the same in each run: for tests that are repeated. Somebody
    /// who chooses the keys can choose such as collide.
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

    /// The calling thread's access. One for each thread: with two, a thread may wait for itself.
    pub fn handle(&self) -> Handle<'_, C> {
        Handle::new(self)
    }

    /// How many records there are. Exact when nobody changes any; otherwise some of what others do
    /// meanwhile is counted.
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
        // SAFETY: nobody has the map, and so its pairs; each is in one entry.
        large.into_iter().for_each(|pair| unsafe { handle.end_pair(pair) });
        handle.end_dying();
        drop(handle);
        // SAFETY: dropped once, here. The table is from a box, and nobody has it when the domain is
        // gone.
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
