//! Arrays with room for more than there will be: mapped once, and in memory only as far as they are
//! used.

use core::marker::PhantomData;

use core::sync::atomic::{AtomicPtr, Ordering};

use super::raw;

/// `LENGTH` values of `T`, for which all zero bytes are a valid value. Mapped at the first request.
#[derive(Debug)]
pub struct Slab<T, const LENGTH: usize> {
    first: AtomicPtr<u8>,
    // Shared by threads as far as its elements are: see `get`.
    _elements: PhantomData<fn() -> [T; LENGTH]>,
}

/// A type of which zeroed memory is a value.
///
/// # Safety
///
/// It is.
pub unsafe trait Zeroed {}

impl<T: Zeroed, const LENGTH: usize> Slab<T, LENGTH> {
    const BYTES: usize = LENGTH * size_of::<T>();

    /// Not mapped yet.
    pub const fn new() -> Self {
        Self { first: AtomicPtr::new(core::ptr::null_mut()), _elements: PhantomData }
    }

    /// The elements; none if the kernel refuses the memory.
    pub fn get(&self) -> Option<&[T]>
    where
        T: Sync,
    {
        let first = self.first();
        // SAFETY: `map` has mapped this many elements, permanently and aligned to a page; zero is a
        // valid value of them (`Zeroed`), and threads may share them.
        (!first.is_null()).then(|| unsafe { core::slice::from_raw_parts(first, LENGTH) })
    }

    /// The first element, for one thread that owns all elements and may write them; null if the
    /// kernel refuses the memory.
    pub fn first(&self) -> *mut T {
        // Acquire: partner of the Release in `map`.
        let first = self.first.load(Ordering::Acquire);
        if first.is_null() { self.map() } else { first }.cast()
    }

    /// The elements, if a thread has asked for them.
    pub fn mapped(&self) -> Option<&[T]>
    where
        T: Sync,
    {
        // Acquire: partner of the Release in `map`.
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
            // The own mapping stays, untouched and without memory behind it: this happens once at
            // most.
            Err(first) => first,
        }
    }

    /// Makes all elements zero again.
    ///
    /// # Safety
    ///
    /// No thread uses an element.
    pub unsafe fn clear(&self) {
        // Relaxed: no other thread is there.
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            // SAFETY: `map` has mapped it with this many bytes, and no thread uses an element
            // (contract of this function).
            unsafe { raw::clear(first, Self::BYTES) };
        }
    }
}
