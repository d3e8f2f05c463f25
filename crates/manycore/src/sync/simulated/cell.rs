//! Shared plain data, each line of which is charged.

use manycore_sim::backend;

/// A cell; `with` and `with_mut` mark the extent of each access, and charge it.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// The value, when no other thread has the cell any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Reads: during `f` no thread may write.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        backend::read_plain(self.0.get().addr(), size_of::<T>());
        f(self.0.get())
    }

    /// Its address, for a thread that is going to read it: charges its first lines, and later reads
    /// are [touched](crate::sync::hint::touch).
    pub fn head(&self) -> *const T {
        backend::read_plain(self.0.get().addr(), size_of::<T>().min(128));
        self.0.get()
    }

    /// Writes: during `f` no other thread may read or write.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        backend::write_plain(self.0.get().addr(), size_of::<T>());
        f(self.0.get())
    }
}
