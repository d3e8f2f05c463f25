//! Objects whose size is known only at run time: the base of the C interface, and of kernels
//! written in C.
//!
//! A program identifies an object by the address of its data, and gets the address of a version's
//! data when it reads or locks the object. Either address is valid wherever an object is required;
//! the word 16 bytes before the data distinguishes them.
//!
//! ```text
//!   object    | head |                                 size | data, aligned to 16 bytes
//!   version   | stamp | superseded | older | kind | master | size | data
//!                                              16 bytes before |
//! ```
//!
//! That word is part of the binary interface: it is null for an object without versions, whose data
//! may be read in that case.

use core::mem::{MaybeUninit, offset_of};
use core::ptr::NonNull;

use manycore_traits::{Conflict, Link, RawSession};

use super::handle::Handle;
use super::object::{Head, Master, VersionOf};
use crate::clock::Clock;
use crate::session::object::{FREED, master_of};
use crate::session::pool;

/// What there is between the word and the data.
#[derive(Clone, Copy)]
#[repr(C)]
struct Bytes<const WORDS: usize> {
    size: usize,
    data: [MaybeUninit<u64>; WORDS],
}

/// From an object's begin to its data.
const HEADER: usize = 16;
const _: () = {
    assert!(offset_of!(Master<Bytes<2>>, data) + offset_of!(Bytes<2>, data) == HEADER);
    assert!(size_of::<Master<Bytes<2>>>() == 32, "as the smallest piece of memory");
    let data = offset_of!(VersionOf<Bytes<2>>, data) + offset_of!(Bytes<2>, data);
    assert!(data.is_multiple_of(16), "versions are aligned to lines");
};

/// Calls a method with the type that has room for this many bytes. There is one type for each size
/// of objects.
macro_rules! with_room {
    ($size:expr, |$bytes:ident| $run:expr; $($words:literal)*) => {
        $(if $size <= $words * 8 {
            type $bytes = Bytes<$words>;
            return $run;
        })*
    };
    ($size:expr, |$bytes:ident| $run:expr) => {
        with_room!($size, |$bytes| $run;
            2 6 10 14 18 22 26 30 34 38 42 46 50 54 58 62 126 254 510 1022 2046 4094);
        unreachable!("no object has {} bytes", $size)
    };
}

/// The object of which this is a version, or itself.
///
/// # Safety
///
/// The data of an object from [`Handle::create_bytes`], or of a version that this thread has found
/// in a session that is still open.
#[inline]
#[must_use]
pub unsafe fn object_of(data: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: the word before the data and its size is the object's head, or the last of the
    // version's header, by the layout that is asserted above; it belongs to data of `create_bytes`
    // or a version of it (contract of this function).
    unsafe {
        match master_of(data.as_ptr().sub(HEADER).cast::<Head>()) {
            None => data,
            Some(master) => NonNull::new_unchecked(master.cast::<u8>().add(HEADER)),
        }
    }
}

/// # Safety
///
/// The address is that of an object's data.
#[inline]
unsafe fn link<T>(object: NonNull<u8>) -> Link<T> {
    // SAFETY: the header of this many bytes is before an object's data (contract of this function).
    Link::from_ptr(unsafe { object.as_ptr().sub(HEADER) }.cast())
}

/// # Safety
///
/// The address of an object's or version's data, which does not change.
#[inline]
unsafe fn size_of_data(data: NonNull<u8>) -> usize {
    // SAFETY: `create_bytes` has written the size into the word before the data, and versions copy
    // it with the data (contract of this function: it is of one of these, and does not change).
    unsafe { *data.as_ptr().cast::<usize>().sub(1) }
}

/// # Safety
///
/// From a session's method.
#[inline]
unsafe fn data_of<T>(bytes: *const T) -> NonNull<u8> {
    // SAFETY: a session's method returns a pointer to a `Bytes<_>` that is not null and there,
    // whose data follows at this offset (contract of this function).
    unsafe { NonNull::new_unchecked(bytes.cast_mut().cast::<u8>().add(offset_of!(Bytes<2>, data))) }
}

impl<C: Clock> Handle<'_, C> {
    /// Whether a version of an object of this many bytes fits into a segment of a log.
    fn has_room_for(&self, size: usize) -> bool {
        const LINES: usize = size_of::<VersionOf<Bytes<0>>>() - HEADER + 64; // of the version, and of the segment
        let limit = self.domain.config.segment_bytes - LINES;
        size < pool::SIZE_MAX && pool::rounded(HEADER + size).is_some_and(|bytes| bytes <= limit)
    }

    /// Makes a new object, all zero, that no other thread can reach. It needs no session, and stays
    /// if an open session is aborted. `None` if the object is too large for a log: larger than
    /// 8,176 bytes with segments of 16 KiB, and larger than 32,752 bytes with any segments.
    pub fn create_bytes(&mut self, size: usize) -> Option<NonNull<u8>> {
        if !self.has_room_for(size) {
            return None;
        }
        let shared_pool = &self.domain.shared_pool;
        let place = self.local().pool.take(HEADER + size, shared_pool);
        // SAFETY: `take` returns memory of at least `HEADER + size` bytes, aligned to 32, in no
        // other use: the head, the size and the data are within it.
        unsafe {
            place.cast::<Head>().write(Head::new(core::ptr::null_mut()));
            place.cast::<usize>().add(1).write(size);
            let data = place.add(HEADER);
            data.write_bytes(0, size);
            Some(NonNull::new_unchecked(data))
        }
    }

    /// What the session sees of an object.
    ///
    /// # Safety
    ///
    /// As of [`RawSession::deref`]; `data` is as for [`object_of`].
    #[inline]
    pub unsafe fn deref_bytes(&self, data: NonNull<u8>) -> NonNull<u8> {
        // SAFETY: the session is open and `data` belongs to an object or to a version found in it
        // (contract of this function). Data that is not a version's is an object's, to which a link
        // may be made.
        unsafe {
            if object_of(data) != data {
                return data;
            }
            data_of(self.deref(link::<Bytes<0>>(data)))
        }
    }

    /// Locks an object, and returns a copy of it, to be changed.
    ///
    /// # Errors
    ///
    /// As of [`RawSession::try_lock`].
    ///
    /// # Safety
    ///
    /// As of [`deref_bytes`](Self::deref_bytes).
    pub unsafe fn try_lock_bytes(&mut self, data: NonNull<u8>) -> Result<NonNull<u8>, Conflict> {
        // SAFETY: session and object are valid (contract of this function). The size is part of the
        // session's view, which does not change; with it `B` is the type that has as much room as
        // the object's memory.
        unsafe {
            let object = object_of(data);
            let size = size_of_data(self.deref_bytes(data));
            with_room!(size, |B| self.lock::<B>(link(object)).map(|bytes| data_of(bytes)));
        }
    }

    /// Locks an object which the session is not going to change.
    ///
    /// # Errors
    ///
    /// As of [`RawSession::try_lock`].
    ///
    /// # Safety
    ///
    /// As of [`deref_bytes`](Self::deref_bytes).
    pub unsafe fn try_lock_const_bytes(&mut self, data: NonNull<u8>) -> Result<(), Conflict> {
        // SAFETY: the contract of this function is that of `lock_bare_bytes`.
        unsafe { self.lock_bare_bytes(data, 0) }
    }

    /// Locks an object, and frees it with the session's commit.
    ///
    /// # Errors
    ///
    /// As of [`RawSession::try_lock`].
    ///
    /// # Safety
    ///
    /// As of [`deref_bytes`](Self::deref_bytes); and after the commit no object has a pointer to
    /// it.
    pub unsafe fn free_bytes(&mut self, data: NonNull<u8>) -> Result<(), Conflict> {
        // SAFETY: the contract of this function is that of `lock_bare_bytes`; that no object has a
        // pointer to it after the commit, too.
        unsafe { self.lock_bare_bytes(data, FREED) }
    }

    /// # Safety
    ///
    /// As of [`try_lock_bytes`](Self::try_lock_bytes).
    unsafe fn lock_bare_bytes(&mut self, data: NonNull<u8>, flag: usize) -> Result<(), Conflict> {
        // SAFETY: session and object are valid (contract of this function). The size is part of the
        // session's view, which does not change; with it `B` is the type that has as much room as
        // the object's memory.
        unsafe {
            let object = object_of(data);
            let size = size_of_data(self.deref_bytes(data));
            with_room!(size, |B| self.lock_bare::<B>(link(object), flag));
        }
    }
}
