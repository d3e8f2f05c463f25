//! The copy of an object that is being changed; it is the object's lock.

use core::ptr::null_mut;

use super::Record;
use crate::session::object;
use crate::session::pool::SIZE_MAX;
use crate::sync::atomic::Ordering;
use crate::sync::order;

/// The record of the thread that has made a copy.
pub(in crate::rlu) type Owner = *const Record;

pub(in crate::rlu) type Header = object::Header<Owner>;
pub(in crate::rlu) type CopyOf<T> = object::Copy<Owner, T>;
pub(in crate::rlu) type Head = object::Head<Owner>;
pub(in crate::rlu) type Master<T> = object::Master<Owner, T>;
pub(in crate::rlu) type Kind = object::Kind<Owner>;
pub(in crate::rlu) type InPlaceKindOf<T> = object::InPlaceKindOf<Owner, T>;
pub(in crate::rlu) type OwnedKindOf<T> = object::OwnedKindOf<Owner, T>;
pub(in crate::rlu) type Dying = object::Dying<Owner>;

pub(in crate::rlu) const fn kind_of<T>() -> &'static Kind {
    const { assert!(size_of::<CopyOf<T>>() <= SIZE_MAX, "an object has less than 32 KiB") };
    &object::KindOf::<Owner, T>::KIND
}

/// The copy of an object, which the caller may follow; null if there is none.
#[inline]
pub(in crate::rlu) fn copy_of(head: &Head) -> *mut Header {
    // Acquire: partner of the Release in `lock`, for the copy, and in `unlock`, for the data
    // written back.
    head.load(order!(Acquire, "rlu-copy-of"))
}

/// Locks an object that has no copy, by this copy.
#[inline]
pub(in crate::rlu) fn lock(head: &Head, copy: *mut Header) -> bool {
    // Release: partner of the Acquire in `copy_of`. Relaxed on failure: nothing is followed.
    let done = order!(Release, "rlu-lock");
    head.compare_exchange(null_mut(), copy, done, Ordering::Relaxed).is_ok()
}

/// Unlocks an object whose current data is in the object itself.
#[inline]
pub(in crate::rlu) fn unlock(head: &Head) {
    // Release: partner of the Acquire in `copy_of`.
    head.store(null_mut(), order!(Release, "rlu-unlock"));
}
