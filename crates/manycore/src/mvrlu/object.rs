//! Objects, and the versions of them.
//!
//! ```text
//!   object (master)            the newest version            the one before
//!  +-------+----------+   +--------------------+------+   +--------------------+------+
//!  | head  |   data   |   | stamp older master | data |   | stamp older master | data |
//!  +---|---+----------+   +---------|----------+------+   +---------|----------+------+
//!      +---------------------^      +--------------------------^    +---> null: then the master
//! ```
//!
//! A head is null while the master is all there is, as most are at most times: then reading an object costs the load and
//! test of one word, on the line where the data is.

use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use manycore_traits::Link;

use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

/// An object's word before its data: its newest version, which may be one that is being written.
pub(super) type Head = AtomicPtr<Version>;

/// An object as it lies in memory.
#[repr(C)]
pub(super) struct Master<T> {
    head: Head,
    pub data: UnsafeCell<T>,
}

impl<T> Master<T> {
    pub fn new(data: T) -> Self {
        Self { head: Head::new(null_mut()), data: UnsafeCell::new(data) }
    }

    pub fn of(link: Link<T>) -> NonNull<Self> {
        NonNull::new(link.as_ptr().cast()).expect("a link that leads somewhere")
    }
}

/// A version that was never committed, and never will be; or a lock without data.
pub(super) const NEVER: u64 = u64::MAX;

/// The object ends with this version.
pub(super) const FREED: usize = 2;
/// The version has no data: its object was locked only.
pub(super) const BARE: usize = 4;
/// Tells a version from an object, for whoever has a pointer to data: in the word before it.
const VERSION: usize = 1;
const FLAGS: usize = 7;

/// What comes before the data of a version.
#[repr(C)]
pub(super) struct Version {
    /// When it was committed; or `UNDECIDED` and the [`Record`](super::record::Record) of by whom, or `NEVER`.
    pub stamp: AtomicU64,
    /// When the next newer one was committed, or 0.
    pub superseded: AtomicU64,
    /// The next older version; null for the master.
    pub older: *mut Version,
    pub kind: &'static Kind,
    /// The object, and flags. Written by the thread that makes the version, up to its commit.
    master: usize,
}

/// A version as it lies in a log.
#[repr(C)]
pub(super) struct Copy<T> {
    pub version: Version,
    pub data: UnsafeCell<T>,
}

impl Version {
    pub fn new(stamp: u64, older: *mut Self, kind: &'static Kind, master: *mut Head) -> Self {
        let (stamp, superseded) = (AtomicU64::new(stamp), AtomicU64::new(0));
        Self { stamp, superseded, older, kind, master: master.expose_provenance() | VERSION }
    }

    #[inline]
    pub fn master(&self) -> *mut Head {
        core::ptr::with_exposed_provenance_mut(self.master & !FLAGS)
    }

    #[inline]
    pub fn has(&self, flag: usize) -> bool {
        self.master & flag != 0
    }

    pub fn set(&mut self, flag: usize) {
        self.master |= flag;
    }

    pub fn clear(&mut self, flag: usize) {
        self.master &= !flag;
    }
}

/// The word of a link's object.
///
/// # Safety
///
/// The object is there for as long as `'a`.
#[inline]
pub(super) unsafe fn head<'a, T>(link: Link<T>) -> &'a Head {
    // SAFETY: a link leads to a master, which begins with its head.
    unsafe { &*link.as_ptr().cast::<Head>() }
}

/// What has to be known about a type where the type is not.
pub(super) struct Kind {
    /// Bytes of an object.
    pub object: usize,
    /// Bytes of a version, to the next whole line.
    pub version: usize,
    /// Copies the data of a version over that of its object. Nobody reads or writes either.
    pub write_back: unsafe fn(*mut Version, *mut Head),
    /// The end of an object, which nobody has.
    pub end: unsafe fn(*mut Head),
    /// The end of a version, which nobody has.
    #[cfg(loom)]
    pub end_version: unsafe fn(*mut Version),
}

pub(super) struct KindOf<T>(PhantomData<T>);

impl<T> KindOf<T> {
    pub const KIND: Kind = {
        assert!(align_of::<Copy<T>>() <= 16, "data is aligned to 16 bytes at most");
        Kind {
            object: size_of::<Master<T>>(),
            version: size_of::<Copy<T>>().next_multiple_of(64),
            write_back: write_back::<T>,
            end: end::<T>,
            #[cfg(loom)]
            end_version: end_version::<T>,
        }
    };
}

/// # Safety
///
/// As of [`Kind::write_back`].
unsafe fn write_back<T>(from: *mut Version, to: *mut Head) {
    // SAFETY: both are of this type, and the caller's for now.
    unsafe {
        let (from, to) = (&(*from.cast::<Copy<T>>()).data, &(*to.cast::<Master<T>>()).data);
        from.with(|from| to.with_mut(|to| to.copy_from_nonoverlapping(from, 1)));
    }
}

/// # Safety
///
/// As of [`Kind::end`].
unsafe fn end<T>(_master: *mut Head) {
    // The model checker is to see that nobody else touches it now.
    #[cfg(loom)]
    // SAFETY: the object is the caller's.
    unsafe {
        (*_master.cast::<Master<T>>()).data.with_mut(|_| ());
    }
}

/// # Safety
///
/// As of [`Kind::end_version`].
#[cfg(loom)]
unsafe fn end_version<T>(version: *mut Version) {
    // SAFETY: the version is the caller's.
    unsafe { (*version.cast::<Copy<T>>()).data.with_mut(|_| ()) };
}

/// The object, if the word before some data is a version's.
///
/// # Safety
///
/// The word is the last of a version's header, or an object's head.
#[cfg(not(loom))]
#[inline]
pub(super) unsafe fn master_of(word: *const Head) -> Option<*mut Head> {
    // SAFETY: either may be read as a pointer. Relaxed: only its lowest bit is looked at unless it is a version's, and that word
    // does not change while others have the version.
    let word = unsafe { &*word }.load(Ordering::Relaxed);
    let is_version = word.addr() & VERSION != 0;
    is_version.then(|| core::ptr::with_exposed_provenance_mut(word.addr() & !FLAGS))
}

/// The newest version of an object, which the caller may follow; null if that is the master.
#[inline]
pub(super) fn newest(head: &Head) -> *mut Version {
    // Acquire: partner of the Release of whoever made the version, or wrote it back.
    head.load(order!(Acquire, "mvrlu-newest"))
}

/// Puts a version before the others, or back, if the newest is the one expected.
#[inline]
pub(super) fn exchange(head: &Head, expected: *mut Version, new: *mut Version) -> bool {
    // AcqRel: partner of the Acquire in `newest`, and of each other: the data of a version that is written back, in the object.
    let done = order!(AcqRel, "mvrlu-exchange");
    // Relaxed on failure: nothing is followed.
    head.compare_exchange(expected, new, done, Ordering::Relaxed).is_ok()
}
