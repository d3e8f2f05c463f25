//! Durable transactions on objects in memory.
//!
//! Programs keep their objects in memory, as versions of `manycore::mvrlu`: threads read them
//! without waiting, and change several objects atomically in a transaction. The changes of a
//! transaction go into a journal, together with those of all threads that commit at the same time;
//! one flush of the disk covers all of them.
//!
//! ```
//! use timestone::{Map, Store};
//!
//! let directory = tempfile::tempdir()?;
//! let store = Store::open(directory.path())?;
//! let balances: Map<u32, i64> = store.map("balances")?;
//! let mut me = store.register()?;
//! me.run(|tx| {
//!     balances.insert(tx, 1, 100)?;
//!     balances.insert(tx, 2, 0)
//! })?;
//! me.run(|tx| {
//!     balances.update(tx, &1, |balance| *balance -= 30)?;
//!     balances.update(tx, &2, |balance| *balance += 30)
//! })?; // both changes are on the disk, or after a crash neither is
//! assert_eq!(me.read(|now| (balances.get(now, &1), balances.get(now, &2))), (Some(70), Some(30)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | | |
//! |---|---|
//! | [`Store`] | opens the files, and recovers after a crash |
//! | [`Member`] | a thread's access: it runs transactions, and reads |
//! | [`Map`], [`OrderedMap`], [`Set`], [`Queue`], [`List`] | what is in a store, by name |
//! | [`Blob`] | bytes of any length |
//! | [`Operation`] | a function that the journal has by its name, rather than what it has written |
//! | [`Ptr`] | structures of your own |
//! | [`ReadOnly`] | a store that no program changes |
//! | [`Durability`] | when a commit returns, and what a crash may take back |
//! | [`Isolation`] | what a transaction may have seen of others when it commits |
//! | [`inspect`] | looks at the files |
//! | [`offline`] | copies and compacts stores that no program has open |
//! | [`device`] | files; and devices that crash and fail, for tests of your own program |
//!
//! # Guarantees
//!
//! - A transaction is atomic, for other threads and over crashes.
//! - Transactions have snapshot isolation, unless they ask for more ([`Isolation`]): each reads as
//!   of its begin, and if two change the same object at the same time, one of them runs again. If
//!   each of two transactions reads what the other changes, both may commit (write skew).
//! - A snapshot ([`Member::read`]) sees the transactions that are on the disk, and its own thread's
//!   commits. No crash takes back what it has seen, except for its own thread's commits.
//! - A crash takes back the last commits or none, and never an acknowledged one.
//!
//! # When not to use it
//!
//! All objects are in memory. Opening a store reads all of them. One process at a time has a store.
//! When the journal is half full, an image is written of all objects: for large stores the journal
//! is to be large.
//!
//! [`volume`] describes the contents of the files, and the order of writes.

const _: () =
    assert!(cfg!(target_endian = "little"), "words in files are as in memory: little endian");

pub mod device;
mod error;
#[cfg(not(loom))]
mod heap;
#[cfg(not(loom))]
pub mod inspect;
pub mod journal;
#[cfg(not(loom))]
pub mod offline;
#[doc(hidden)]
pub mod protocol;
mod random;
#[doc(hidden)]
pub mod ring;
#[cfg(not(loom))]
mod store;
pub mod superblock;
#[cfg(not(loom))]
mod sync;
pub mod volume;

pub use error::{Error, Result};
#[cfg(not(loom))]
#[doc(hidden)]
pub use store::untyped;
#[cfg(not(loom))]
pub use store::{
    Arguments, Blob, Committing, Cursor, Durability, Isolation, List, Map, Member, Operation,
    Operations, Options, OrderedMap, Ptr, Queue, Range, ReadOnly, Registered, Session, Set,
    Snapshot, Stats, Stop, Store, Terms, Ticket, Transaction,
};

/// The possible keys and values: plain data without gaps, for which any bits are valid.
///
/// Types of your own derive `FromBytes`, `IntoBytes` and `Immutable` of the crate `zerocopy`, and
/// are `Copy`.
pub trait Persist:
    zerocopy::FromBytes + zerocopy::IntoBytes + zerocopy::Immutable + Copy + Send + Sync + 'static
{
}

impl<T> Persist for T where
    T: zerocopy::FromBytes
        + zerocopy::IntoBytes
        + zerocopy::Immutable
        + Copy
        + Send
        + Sync
        + 'static
{
}
