//! A value that threads read without a lock while other threads replace it.

use alloc::boxed::Box;

use super::{Domain, Guard};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::order;

/// A value of a domain, for RCU without `unsafe`: a routing table, a configuration, a list of
/// peers. Threads read it under a [`Guard`], and replace it as a whole.
///
/// A reader writes nothing but its thread's record, and follows one pointer. A thread that replaces
/// the value allocates the new one. The old value is dropped after a grace period, on any thread,
/// and at the latest with the domain.
///
/// ```
/// use manycore::reclaim::Atomic;
///
/// let routes = Atomic::new(vec![("10.0.0.0/8", 1), ("0.0.0.0/0", 2)]);
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         let default = routes.read(|routes| routes.last().copied());
///         assert_eq!(default, Some(("0.0.0.0/0", 2)));
///     });
///     scope.spawn(|| {
///         routes.update(|routes| {
///             let mut more = routes.clone();
///             more.insert(0, ("10.1.0.0/16", 3));
///             more
///         });
///     });
/// });
/// assert_eq!(routes.into_inner().len(), 3);
/// ```
///
/// What was read does not outlast the guard:
///
/// ```compile_fail
/// use manycore::reclaim::{Atomic, Domain};
///
/// let domain = Domain::default();
/// let name = Atomic::new_in(&domain, String::from("first"));
/// let handle = domain.register();
/// let guard = handle.pin();
/// let seen = name.load(&guard);
/// drop(guard); // it is borrowed
/// println!("{seen}");
/// ```
///
/// The value does not change: an update replaces it by another one. Two updates at the same time
/// make their values one after the other. For many writers, or for large values, take a map.
pub struct Atomic<'d, T> {
    /// A pointer from a box. A value that was replaced is retired in the domain.
    value: AtomicPtr<T>,
    domain: &'d Domain,
}

// SAFETY: with the cell goes its value, and values that were replaced are dropped by any thread.
unsafe impl<T: Send> Send for Atomic<'_, T> {}

// SAFETY: threads read the value at the same time (`Sync`), and any of them may drop one (`Send`).
unsafe impl<T: Send + Sync> Sync for Atomic<'_, T> {}

#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
impl<T: Send + Sync + 'static> Atomic<'static, T> {
    /// Creates one in the process' own domain: see [`section`](super::section).
    pub fn new(value: T) -> Self {
        Self::new_in(super::domain(), value)
    }

    /// Runs `f` with the present value, in a section.
    #[inline]
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        super::section(|guard| f(self.load(guard)))
    }

    /// Puts a value in this one's place.
    pub fn store(&self, value: T) {
        super::section(|guard| _ = self.replace(value, guard));
    }

    /// Replaces this value by one that `f` makes of it. `f` is called again if another thread has
    /// replaced the value meanwhile.
    pub fn update(&self, f: impl FnMut(&T) -> T) {
        super::section(|guard| _ = self.update_in(guard, f));
    }
}

impl<'d, T: Send + Sync + 'static> Atomic<'d, T> {
    /// Creates one in a domain.
    pub fn new_in(domain: &'d Domain, value: T) -> Self {
        Self { value: AtomicPtr::new(Box::into_raw(Box::new(value))), domain }
    }

    /// The value as it is now.
    ///
    /// # Panics
    ///
    /// If the guard is one of another domain. So do all that take a guard.
    #[inline]
    pub fn load<'g>(&'g self, guard: &'g Guard<'_>) -> &'g T {
        self.check(guard);
        // Acquire: partner of the Release in `replace` and `compare_exchange`: the value.
        let value = self.value.load(order!(Acquire, "atomic-load"));
        // SAFETY: from a box. It was there in a section of this domain, and is retired only after
        // it was replaced, so that it stays until the section's end; that is not before `'g` is.
        // `drop` and `into_inner` borrow the cell exclusively, and end `'g`, too.
        unsafe { &*value }
    }

    /// Replaces this value; returns the old one.
    pub fn replace<'g>(&'g self, value: T, guard: &'g Guard<'_>) -> &'g T {
        self.check(guard);
        let value = Box::into_raw(Box::new(value));
        // AcqRel: partner of the Acquire in `load`, and of each other.
        let old = self.value.swap(value, order!(AcqRel, "atomic-replace"));
        // SAFETY: the swap has taken the old value out, once.
        unsafe { self.retire(old, guard) }
    }

    /// Replaces this value if it is `current` (compared by its address, not by its contents);
    /// returns the old one.
    ///
    /// # Errors
    ///
    /// The new value, if another thread has been faster.
    pub fn compare_exchange<'g>(
        &'g self,
        current: &'g T,
        new: T,
        guard: &'g Guard<'_>,
    ) -> Result<&'g T, T> {
        self.check(guard);
        let new = Box::into_raw(Box::new(new));
        let current = core::ptr::from_ref(current).cast_mut();
        // AcqRel: partner of the Acquire in `load`, and of each other. Relaxed on failure: no value
        // is read then.
        let (done, failed) = (order!(AcqRel, "atomic-exchange"), Ordering::Relaxed);
        match self.value.compare_exchange(current, new, done, failed) {
            // SAFETY: the exchange has taken the old value out, once.
            Ok(old) => Ok(unsafe { self.retire(old, guard) }),
            // SAFETY: from the box above, and shown to no thread.
            Err(_) => Err(*unsafe { Box::from_raw(new) }),
        }
    }

    /// Replaces this value by one that `f` makes of it; returns the old one. `f` is called again if
    /// another thread has replaced the value meanwhile.
    pub fn update_in<'g>(&'g self, guard: &'g Guard<'_>, mut f: impl FnMut(&T) -> T) -> &'g T {
        loop {
            let current = self.load(guard);
            if let Ok(old) = self.compare_exchange(current, f(current), guard) {
                return old;
            }
        }
    }

    /// The value, of a cell that no other thread has.
    pub fn get_mut(&mut self) -> &mut T {
        // Relaxed: no other thread has the cell. SAFETY: from a box, which is the cell's.
        unsafe { &mut *self.value.load(Ordering::Relaxed) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        let cell = core::mem::ManuallyDrop::new(self);
        // Relaxed: no other thread has the cell. SAFETY: from a box, which is the cell's, and taken
        // once, since `drop` does not run.
        *unsafe { Box::from_raw(cell.value.load(Ordering::Relaxed)) }
    }

    /// # Safety
    ///
    /// The value was in the cell, and the caller has taken it out, once.
    unsafe fn retire<'g>(&'g self, old: *mut T, guard: &'g Guard<'_>) -> &'g T {
        // SAFETY: from a box, and no longer to be found (contract of this function); `T` is `Send`
        // and `'static`.
        unsafe { guard.retire(old) };
        // SAFETY: it is dropped after the section, which is the guard's.
        unsafe { &*old }
    }

    #[inline]
    fn check(&self, guard: &Guard<'_>) {
        assert!(core::ptr::eq(guard.handle().domain(), self.domain), "a guard of another domain");
    }
}

impl<T> Drop for Atomic<'_, T> {
    fn drop(&mut self) {
        // Relaxed: no other thread has the cell. SAFETY: from a box, which is the cell's.
        drop(unsafe { Box::from_raw(self.value.load(Ordering::Relaxed)) });
    }
}

opaque! { [T] Atomic<'_, T>, "Atomic"; }
