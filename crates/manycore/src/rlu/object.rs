//! Objects, and the copies of those that are being changed.
//!
//! ```text
//!   object                   its copy, if it is locked
//!  +-------+----------+     +-------------------------+------+
//!  | head  |   data   |     | stamp owner kind object | data |
//!  +---|---+----------+     +-------------------------+------+
//!      +---------------------^
//! ```

use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use manycore_traits::Link;

use super::record::Record;
use crate::session::pool::SIZE_MAX;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::order;

/// An object's word before its data: its copy, which is the lock; or null.
pub(super) type Head = AtomicPtr<Header>;

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

/// The stamp of a copy that was not committed, and never will be; or of a lock without data.
pub(super) const NEVER: u64 = u64::MAX;

/// The object ends with this copy.
pub(super) const FREED: usize = 2;
/// The copy has no data: its object was locked only.
pub(super) const BARE: usize = 4;
/// Tells a copy from an object, for whoever has a pointer to data: in the word before it.
const COPY: usize = 1;
const FLAGS: usize = 7;

/// What comes before the data of a copy.
#[repr(C)]
pub(super) struct Header {
    /// When it was committed; or [`UNDECIDED`](crate::clock::UNDECIDED) and the owner; or `NEVER`.
    pub stamp: AtomicU64,
    /// Of the thread that has made it.
    pub owner: *const Record,
    pub kind: &'static Kind,
    /// The object, and flags. Written by the thread that makes the copy, up to its commit.
    object: usize,
}

/// A copy as it lies in memory.
#[repr(C)]
pub(super) struct Copy<T> {
    pub header: Header,
    pub data: UnsafeCell<T>,
}

impl Header {
    pub fn new(
        stamp: u64,
        owner: *const Record,
        kind: &'static Kind,
        object: *mut Head,
        flags: usize,
    ) -> Self {
        let object = object.expose_provenance() | COPY | flags;
        Self { stamp: AtomicU64::new(stamp), owner, kind, object }
    }

    #[inline]
    pub fn object(&self) -> *mut Head {
        core::ptr::with_exposed_provenance_mut(self.object & !FLAGS)
    }

    #[inline]
    pub fn has(&self, flag: usize) -> bool {
        self.object & flag != 0
    }

    pub fn set(&mut self, flag: usize) {
        self.object |= flag;
    }

    pub fn clear(&mut self, flag: usize) {
        self.object &= !flag;
    }

    /// Whether its commit changes the object.
    pub fn is_write(&self) -> bool {
        !self.has(BARE) || self.has(FREED)
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
    /// Bytes of a copy.
    pub copy: usize,
    /// Copies the data of a copy over that of its object. Nobody writes the one, or touches the other.
    pub write_back: unsafe fn(*mut Header, *mut Head),
    /// The end of an object, which nobody has.
    pub end: unsafe fn(*mut Head),
    /// The end of a copy, which nobody has.
    pub end_copy: unsafe fn(*mut Header),
}

pub(super) struct KindOf<T>(PhantomData<T>);

impl<T> KindOf<T> {
    pub const KIND: Kind = {
        assert!(align_of::<Copy<T>>() <= 16, "data is aligned to 16 bytes at most");
        assert!(size_of::<Copy<T>>() <= SIZE_MAX, "an object has less than 32 KiB");
        Kind {
            object: size_of::<Master<T>>(),
            copy: size_of::<Copy<T>>(),
            write_back: write_back::<T>,
            end: end::<T>,
            end_copy: end_copy::<T>,
        }
    };
}

/// # Safety
///
/// As of [`Kind::write_back`].
unsafe fn write_back<T>(from: *mut Header, to: *mut Head) {
    // SAFETY: both are of this type, and the caller's for now.
    unsafe {
        let (from, to) = (&(*from.cast::<Copy<T>>()).data, &(*to.cast::<Master<T>>()).data);
        from.with(|from| to.with_mut(|to| to.copy_from_nonoverlapping(from, 1)));
    }
}

/// # Safety
///
/// As of [`Kind::end`].
unsafe fn end<T>(_object: *mut Head) {
    // The model checker is to see that nobody else touches it now.
    #[cfg(loom)]
    // SAFETY: the object is the caller's.
    unsafe {
        (*_object.cast::<Master<T>>()).data.with_mut(|_| ());
    }
}

/// # Safety
///
/// As of [`Kind::end_copy`].
unsafe fn end_copy<T>(_copy: *mut Header) {
    #[cfg(loom)]
    // SAFETY: the copy is the caller's.
    unsafe {
        (*_copy.cast::<Copy<T>>()).data.with_mut(|_| ());
    }
}

/// The copy of an object, which the caller may follow; null if there is none.
#[inline]
pub(super) fn copy_of(head: &Head) -> *mut Header {
    // Acquire: partner of the Release in `lock`, for the copy, and in `unlock`, for what was written back.
    head.load(order!(Acquire, "rlu-copy-of"))
}

/// Locks an object that has no copy, by this one.
#[inline]
pub(super) fn lock(head: &Head, copy: *mut Header) -> bool {
    // Release: partner of the Acquire in `copy_of`. Relaxed on failure: nothing is followed.
    let done = order!(Release, "rlu-lock");
    head.compare_exchange(null_mut(), copy, done, Ordering::Relaxed).is_ok()
}

/// Unlocks an object: what is to be seen of it is in its place.
#[inline]
pub(super) fn unlock(head: &Head) {
    // Release: partner of the Acquire in `copy_of`.
    head.store(null_mut(), order!(Release, "rlu-unlock"));
}
