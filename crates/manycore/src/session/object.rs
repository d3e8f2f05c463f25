//! Objects, and the copies of them that transactions make: the common part of mechanisms with
//! sessions.
//!
//! ```text
//!   object (master)                 its newest copy
//!  +-------+----------+     +-----------------------+------+
//!  | head  |   data   |     | stamp own kind master | data |
//!  +---|---+----------+     +-----------------------+------+
//!      +---------------------^
//! ```
//!
//! A head is null while the object has no copy, as most objects most of the time. Then reading an
//! object costs the load and test of one word, on the line where the data is.

use alloc::vec::Vec;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};

use manycore_traits::Link;

use super::pool::{Pool, SIZE_MAX, SharedPool};
use crate::exhaust::exhaust;
use crate::sync::atomic::{AtomicPtr, AtomicU64};
use crate::sync::cell::UnsafeCell;
use crate::sync::mutation;

/// The word before an object's data: null, or the object's newest copy, to which a thread may be
/// writing.
pub(crate) type Head<X> = AtomicPtr<Header<X>>;

/// An object as it lies in memory.
#[repr(C)]
pub(crate) struct Master<X: 'static, T> {
    head: Head<X>,
    pub data: UnsafeCell<T>,
}

impl<X: 'static, T> Master<X, T> {
    pub fn of(link: Link<T>) -> NonNull<Self> {
        NonNull::new(link.as_ptr().cast()).expect("a link that leads somewhere")
    }
}

/// An object in its owner's memory, which may have many of them side by side. Sessions read, lock
/// and change it as any other object, and never free it. Memory of zero bytes is such an object, if
/// zero bytes are a value of `T`.
#[repr(C)]
pub(crate) struct Embedded<T> {
    /// A [`Head`] of any mechanism: a pointer.
    head: AtomicPtr<()>,
    data: UnsafeCell<T>,
}

impl<T> Embedded<T> {
    pub fn new(data: T) -> Self {
        Self { head: AtomicPtr::new(null_mut()), data: UnsafeCell::new(data) }
    }

    /// A link to this object. It may be used in sessions of one domain, for as long as the object
    /// exists.
    pub const fn link(place: *mut Self) -> Link<T> {
        Link::from_ptr(place.cast())
    }
}

/// The word of a link's object.
///
/// # Safety
///
/// The object is there for as long as `'a`.
#[inline]
pub(crate) unsafe fn head<'a, X: 'static, T>(link: Link<T>) -> &'a Head<X> {
    // SAFETY: a link that is not null leads to a `Master` or an `Embedded`. Both begin with their
    // head, which is valid for `'a` (contract of this function).
    unsafe { &*link.as_ptr().cast::<Head<X>>() }
}

/// The stamp of a lock without data, and of a copy that will never be committed.
pub(crate) const NEVER: u64 = u64::MAX;

/// The object ends with this copy.
pub(crate) const FREED: usize = 2;
/// The copy has no data: its object was locked only.
pub(crate) const BARE: usize = 4;
/// Whether data belongs to a copy or to an object, for a thread that has a pointer to the data: the
/// word before the data shows it.
const COPY: usize = 1;
const FLAGS: usize = 7;

/// What comes before the data of a copy.
#[repr(C)]
pub(crate) struct Header<X: 'static> {
    /// The time of the copy's commit; or [`UNDECIDED`](crate::clock::UNDECIDED) and the record of
    /// the thread that commits; or `NEVER`.
    pub stamp: AtomicU64,
    /// What the mechanism has there.
    pub own: X,
    pub kind: &'static Kind<X>,
    /// The object, with flags in the lowest bits of its address. The thread that makes the copy
    /// writes this field until the commit. Other threads may have found the copy before, but read
    /// this field after the commit. So it is a cell: otherwise the compiler could read what is
    /// behind a shared reference at any time.
    master: Cell<*mut Head<X>>,
}

/// A copy as it lies in memory.
#[repr(C)]
pub(crate) struct Copy<X: 'static, T> {
    pub header: Header<X>,
    pub data: UnsafeCell<T>,
}

impl<X: 'static> Header<X> {
    pub fn new(
        stamp: u64,
        own: X,
        kind: &'static Kind<X>,
        master: *mut Head<X>,
        flags: usize,
    ) -> Self {
        let master = master.map_addr(|address| address | COPY | flags);
        Self { stamp: AtomicU64::new(stamp), own, kind, master: Cell::new(master) }
    }

    #[inline]
    pub fn master(&self) -> *mut Head<X> {
        self.master.get().map_addr(|address| address & !FLAGS)
    }

    #[inline]
    pub fn has(&self, flag: usize) -> bool {
        self.master.get().addr() & flag != 0
    }

    pub fn set(&self, flag: usize) {
        self.master.set(self.master.get().map_addr(|address| address | flag));
    }

    pub fn clear(&self, flag: usize) {
        self.master.set(self.master.get().map_addr(|address| address & !flag));
    }

    /// Whether its commit changes the object.
    pub fn is_write(&self) -> bool {
        !self.has(BARE) || self.has(FREED)
    }

    /// Prepares the copy for the commit, before that is decided; returns whether the commit changes
    /// the object. A copy that ends the object then has no data, even if the session has changed
    /// the object before. So a thread that reads the latest version, and has found the object,
    /// reads the data from before the session: the session's intermediate data was never committed.
    pub fn ready(&self) -> bool {
        if self.has(FREED) && !mutation!("sessions-freed-changed") {
            self.set(BARE);
        }
        self.is_write()
    }
}

/// The object, if the word before some data is a copy's.
///
/// # Safety
///
/// The word is the last of a copy's header, or an object's head.
#[cfg(not(loom))]
#[inline]
pub(crate) unsafe fn master_of<X: 'static>(word: *const Head<X>) -> Option<*mut Head<X>> {
    // Relaxed: only its lowest bit is read unless it is a copy's, and that word does not
    // change while others have the copy.
    let relaxed = crate::sync::atomic::Ordering::Relaxed;
    // SAFETY: the word is a `Head`, or the `Cell` of a pointer, which has the same size (contract
    // of this function); a copy's does not change while others have found the copy.
    let word = unsafe { &*word }.load(relaxed);
    let is_copy = word.addr() & COPY != 0;
    is_copy.then(|| word.map_addr(|address| address & !FLAGS).cast())
}

/// The size of the largest value for which an object that owns it is made here; larger values need
/// a box.
pub(crate) const OWNED_MAX: usize = 4 << 10;

/// The value of an object that owns it: see
/// [`RawSession::make_owned`](manycore_traits::RawSession::make_owned).
///
/// # Safety
///
/// The link comes from `make_owned`, and the object exists for as long as `'a`.
#[inline]
#[must_use]
pub unsafe fn owned<'a, T>(link: Link<T>) -> &'a T {
    // SAFETY: the object is valid (contract of this function), and has the layout of an `Embedded`,
    // which `OwnedKindOf` asserts. Its data is written before any thread has a link, and then
    // never.
    unsafe { (*link.as_ptr().cast::<Embedded<T>>()).data.with(|data| &*data) }
}

/// Drops the value of an object that owns it. The object's memory still belongs to the domain.
///
/// # Safety
///
/// As of [`RawSession::end_owned`](manycore_traits::RawSession::end_owned).
pub(crate) unsafe fn drop_owned<T>(link: Link<T>) {
    // SAFETY: the object is valid, has the layout of an `Embedded`, and no thread has it (contract
    // of this function).
    unsafe {
        (*link.as_ptr().cast::<Embedded<T>>()).data.with_mut(|data| data.drop_in_place());
    }
}

/// The data about a type that is needed by code that does not know the type.
pub(crate) struct Kind<X: 'static> {
    /// The bytes of an object; 0 if its memory does not come from a pool.
    pub object: usize,
    /// Bytes of a copy.
    pub copy: usize,
    /// Copies the data of a copy to its object. No thread writes the copy's data, or accesses the
    /// object's.
    pub write_back: unsafe fn(*mut Header<X>, *mut Head<X>),
    /// The end of an object, which no thread has.
    pub end: unsafe fn(*mut Head<X>),
    /// The end of a copy, which no thread has.
    pub end_copy: unsafe fn(*mut Header<X>),
    /// Whether an object's end runs what its user has written.
    pub drops: bool,
}

pub(crate) struct KindOf<X, T>(PhantomData<(X, T)>);

impl<X: 'static, T> KindOf<X, T> {
    pub const KIND: Kind<X> = {
        assert!(align_of::<Copy<X, T>>() <= 16, "data is aligned to 16 bytes at most");
        assert!(
            size_of::<Master<X, T>>() == size_of::<Embedded<T>>(),
            "an object is the same in its owner's memory"
        );
        Kind {
            object: size_of::<Master<X, T>>(),
            copy: size_of::<Copy<X, T>>(),
            write_back: write_back::<X, T>,
            end: end::<X, T>,
            end_copy: end_copy::<X, T>,
            drops: false,
        }
    };
}

/// The kind of an object that owns its value. Such an object is locked only to be freed, by a copy
/// without data.
pub(crate) struct OwnedKindOf<X, T>(PhantomData<(X, T)>);

impl<X: 'static, T: Send + Sync + 'static> OwnedKindOf<X, T> {
    pub const KIND: Kind<X> = {
        assert!(
            size_of::<Master<X, T>>() == size_of::<Embedded<T>>(),
            "where the data is follows from its type"
        );
        Kind {
            object: size_of::<Master<X, T>>(),
            copy: size_of::<Copy<X, ()>>(),
            write_back: write_back::<X, ()>,
            end: end_owned::<X, T>,
            end_copy: end_copy::<X, ()>,
            drops: core::mem::needs_drop::<T>(),
        }
    };
}

/// The kind of an object in its owner's memory, which no thread uses any more.
pub(crate) struct InPlaceKindOf<X, T>(PhantomData<(X, T)>);

impl<X: 'static, T> InPlaceKindOf<X, T> {
    pub const KIND: Kind<X> = Kind { object: 0, ..KindOf::<X, T>::KIND };
}

/// # Safety
///
/// As of [`Kind::end`].
unsafe fn end_owned<X: 'static, T>(master: *mut Head<X>) {
    // SAFETY: `OwnedKindOf<X, T>` names this function, so the object is of this type; no thread has
    // it any more (contract of `Kind::end`), and it is ended once.
    unsafe { (*master.cast::<Master<X, T>>()).data.with_mut(|data| data.drop_in_place()) };
}

/// Objects that are about to end: no thread can use them. Their values have to be dropped outside
/// any session, without a lock.
pub(crate) struct Dying<X: 'static>(Vec<(*mut Head<X>, &'static Kind<X>)>);

// SAFETY: no other thread has the objects; their values are `Send` (contract of `make_owned`).
unsafe impl<X> Send for Dying<X> {}

impl<X: 'static> Dying<X> {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an object that is dropped with these.
    ///
    /// # Safety
    ///
    /// No thread can use the object any more, and it is ended once.
    pub unsafe fn push(&mut self, object: *mut Head<X>, kind: &'static Kind<X>) {
        self.0.push((object, kind));
    }

    /// Ends an object: at once, or later if that runs the user's code.
    ///
    /// # Safety
    ///
    /// As of [`Pool::end`].
    pub unsafe fn end(
        &mut self,
        object: *mut Head<X>,
        kind: &'static Kind<X>,
        pool: &mut Pool,
        shared_pool: &SharedPool,
    ) {
        if kind.drops {
            self.0.push((object, kind));
        } else {
            // SAFETY: no thread has the object any more, and pool and shared pool are those of its
            // domain (contract of this function).
            unsafe { pool.end(object, kind, shared_pool) };
        }
    }

    /// Takes out one of the objects. The caller ends it.
    #[inline]
    pub fn pop(&mut self) -> Option<(*mut Head<X>, &'static Kind<X>)> {
        self.0.pop()
    }
}

impl<X: 'static> Drop for Dying<X> {
    fn drop(&mut self) {
        exhaust(|| {
            let Some((object, kind)) = self.0.pop() else { return false };
            // SAFETY: `end` was given it to end it once; its memory is the domain's, which ends
            // after this.
            unsafe { (kind.end)(object) };
            true
        });
    }
}

/// # Safety
///
/// As of [`Kind::write_back`].
unsafe fn write_back<X: 'static, T>(from: *mut Header<X>, to: *mut Head<X>) {
    // SAFETY: `KindOf<X, T>` names this function, so both are of these types; no thread writes the
    // copy or accesses the object now (contract of `Kind::write_back`).
    unsafe {
        let (from, to) = (&(*from.cast::<Copy<X, T>>()).data, &(*to.cast::<Master<X, T>>()).data);
        from.with(|from| to.with_mut(|to| to.copy_from_nonoverlapping(from, 1)));
    }
}

/// # Safety
///
/// As of [`Kind::end`].
unsafe fn end<X: 'static, T>(_master: *mut Head<X>) {
    // This shows the model checker that no other thread accesses the object now.
    #[cfg(loom)]
    // SAFETY: no thread has the object any more (contract of this function).
    unsafe {
        (*_master.cast::<Master<X, T>>()).data.with_mut(|_| ());
    }
}

/// # Safety
///
/// As of [`Kind::end_copy`].
unsafe fn end_copy<X: 'static, T>(_copy: *mut Header<X>) {
    #[cfg(loom)]
    // SAFETY: no thread has the copy any more (contract of this function).
    unsafe {
        (*_copy.cast::<Copy<X, T>>()).data.with_mut(|_| ());
    }
}

impl Pool {
    /// A new object that owns its value.
    ///
    /// # Panics
    ///
    /// If that is larger than an object may be, or aligned to more than 32 bytes.
    #[inline]
    pub fn make_owned<X: 'static, T>(
        &mut self,
        kind: &Kind<X>,
        value: T,
        shared_pool: &SharedPool,
    ) -> Link<T> {
        assert!(
            kind.object <= SIZE_MAX && align_of::<Master<X, T>>() <= 32,
            "a value of {} bytes, aligned to {}: put it into a box",
            size_of::<T>(),
            align_of::<T>()
        );
        Link::from_ptr(self.make(kind, value, shared_pool).cast())
    }

    /// A new object, which no other thread knows.
    #[inline]
    pub fn make<X: 'static, T>(
        &mut self,
        kind: &Kind<X>,
        data: T,
        shared_pool: &SharedPool,
    ) -> *mut Head<X> {
        let place = self.take(kind.object, shared_pool).cast::<Master<X, T>>();
        let object = Master { head: Head::new(null_mut()), data: UnsafeCell::new(data) };
        // SAFETY: `take` returns memory of `kind.object` bytes, which is the size of a `Master<X,
        // T>`, aligned to 32 bytes, and in no other use.
        unsafe { place.write(object) };
        place.cast()
    }

    /// The end of an object.
    ///
    /// # Safety
    ///
    /// [`make`](Self::make) has made the object, of this kind and with this shared pool, in this
    /// pool or another. No thread can use it any more.
    pub unsafe fn end<X: 'static>(
        &mut self,
        object: *mut Head<X>,
        kind: &Kind<X>,
        shared_pool: &SharedPool,
    ) {
        // SAFETY: the object is of this kind, and no thread has it any more (contract of this
        // function); `make` has taken its memory from a pool of this shared pool, by the same size.
        unsafe {
            (kind.end)(object);
            if kind.object > 0 {
                self.give(object.cast(), kind.object, shared_pool);
            }
        }
    }
}
