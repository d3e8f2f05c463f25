//! Versions: copies that were committed, the newer before the older.
//!
//! ```text
//!   object (master)            the newest version            the one before
//!  +-------+----------+   +--------------------+------+   +--------------------+------+
//!  | head  |   data   |   | stamp older master | data |   | stamp older master | data |
//!  +---|---+----------+   +---------|----------+------+   +---------|----------+------+
//!      +---------------------^      +--------------------------^    +---> null: then the master
//! ```

use crate::session::object;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::order;

/// The fields of a version in addition to its stamp and its object.
#[repr(C)]
pub(super) struct Chain {
    /// When the next newer one was committed, or 0.
    pub superseded: AtomicU64,
    /// The next older version; null for the master.
    pub older: *mut Version,
}

pub(super) type Version = object::Header<Chain>;
pub(super) type VersionOf<T> = object::Copy<Chain, T>;
pub(super) type Head = object::Head<Chain>;
pub(super) type Master<T> = object::Master<Chain, T>;
pub(super) type Kind = object::Kind<Chain>;
pub(super) type KindOf<T> = object::KindOf<Chain, T>;
pub(super) type InPlaceKindOf<T> = object::InPlaceKindOf<Chain, T>;
pub(super) type OwnedKindOf<T> = object::OwnedKindOf<Chain, T>;
pub(super) type Dying = object::Dying<Chain>;

impl Chain {
    pub fn before(older: *mut Version) -> Self {
        Self { superseded: AtomicU64::new(0), older }
    }
}

impl Kind {
    /// The bytes of a version in a log, rounded up to whole lines.
    #[inline]
    pub fn room(&self) -> usize {
        self.copy.next_multiple_of(64)
    }
}

/// The newest version of an object, which the caller may follow; null if the object has none.
#[inline]
pub(super) fn newest(head: &Head) -> *mut Version {
    // Acquire: partner of the Release of the thread that made the version, or wrote it back.
    head.load(order!(Acquire, "mvrlu-newest"))
}

/// Replaces the newest version, if it is the expected one: by one in front of the others, or by an
/// older one.
#[inline]
pub(super) fn exchange(head: &Head, expected: *mut Version, new: *mut Version) -> bool {
    // SeqCst: partner of the Acquire in `newest`, and of each other: the data of a version that is
    // written back, in the object. And it comes before the read of the epoch in `Domain::stamp`.
    let done = order!(SeqCst, "mvrlu-exchange");
    // Relaxed on failure: nothing is followed.
    head.compare_exchange(expected, new, done, Ordering::Relaxed).is_ok()
}
