//! Shared plain data, with the interface of loom's cell so that the model checker sees each access.

/// The same as `core`'s cell; `with` and `with_mut` mark the extent of each access.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// The value, when no other thread can use the cell any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Reads: during `f` no thread may write.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Writes: during `f` no other thread may read or write.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
