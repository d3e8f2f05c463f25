//! Arrays with room for more than there will be: mapped once, and in memory only as far as they are used.

use core::marker::PhantomData;

use core::sync::atomic::{AtomicPtr, Ordering};

use crate::raw;

/// So many `T`, of which all bytes zero are a value. Mapped when it is first asked for.
#[derive(Debug)]
pub struct Slab<T, const LENGTH: usize> {
    first: AtomicPtr<u8>,
    _elements: PhantomData<[T; LENGTH]>,
}

/// A type of which zeroed memory is a value.
///
/// # Safety
///
/// It is.
pub unsafe trait Zeroed {}

impl<T: Zeroed + Sync, const LENGTH: usize> Slab<T, LENGTH> {
    const BYTES: usize = LENGTH * size_of::<T>();

    /// Not mapped yet.
    pub const fn new() -> Self {
        Self { first: AtomicPtr::new(core::ptr::null_mut()), _elements: PhantomData }
    }

    /// The elements; none if the kernel refuses the memory.
    pub fn get(&self) -> Option<&[T]> {
        // Acquire: partner of the Release in `map`.
        let mut first = self.first.load(Ordering::Acquire);
        if first.is_null() {
            first = self.map();
        }
        // SAFETY: mapped for as many elements, for good, aligned to a page, and zero is a value.
        (!first.is_null())
            .then(|| unsafe { core::slice::from_raw_parts(first.cast::<T>(), LENGTH) })
    }

    /// The elements, if anybody has asked for them.
    pub fn mapped(&self) -> Option<&[T]> {
        // Acquire: as in `get`.
        (!self.first.load(Ordering::Acquire).is_null()).then(|| self.get()).flatten()
    }

    #[cold]
    fn map(&self) -> *mut u8 {
        let new = raw::map(Self::BYTES);
        if new.is_null() {
            return new;
        }
        let none = core::ptr::null_mut();
        // Release: partner of the Acquire in `get`. Acquire: another thread's memory was first.
        match self.first.compare_exchange(none, new, Ordering::Release, Ordering::Acquire) {
            Ok(_) => new,
            // The own mapping stays, untouched and without memory behind it: this happens once at most.
            Err(first) => first,
        }
    }

    /// Makes all elements zero again.
    ///
    /// # Safety
    ///
    /// Nobody uses an element.
    pub unsafe fn clear(&self) {
        // Relaxed: nobody else is there.
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            // SAFETY: mapped above, and not used by the caller's word.
            unsafe { raw::clear(first, Self::BYTES) };
        }
    }
}
