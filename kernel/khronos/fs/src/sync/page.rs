//! Pages of files, and data under a lock for readers and writers.

use alloc::alloc::{Layout, alloc_zeroed};
use alloc::boxed::Box;

use manycore::RawRwLock;
use manycore::sync::cell::UnsafeCell;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

#[repr(align(4096))]
struct Bytes(UnsafeCell<[u8; PAGE_BYTES]>);

/// A page: aligned to its size, so that a kernel can map it.
pub(crate) struct Page(Box<Bytes>);

// SAFETY: shared references read only, and `&mut` writes.
unsafe impl Sync for Bytes {}

impl Page {
    /// A page of zeros; nothing if there is no memory.
    pub fn new() -> Option<Self> {
        // SAFETY: the layout is not of size 0. All zero bytes are a valid page, which has this
        // layout.
        unsafe {
            let page = alloc_zeroed(Layout::new::<Bytes>()).cast::<Bytes>();
            (!page.is_null()).then(|| Self(Box::from_raw(page)))
        }
    }

    /// Copies bytes from an offset in the page.
    pub fn read(&self, from: usize, into: &mut [u8]) {
        // SAFETY: a page is written by `&mut self` only.
        self.0.0.with(|bytes| into.copy_from_slice(unsafe { &(&*bytes)[from..][..into.len()] }));
    }

    /// Copies bytes to an offset in the page.
    pub fn write(&mut self, to: usize, data: &[u8]) {
        // SAFETY: `&mut self`: no other thread has the page.
        self.0
            .0
            .with_mut(|bytes| unsafe { (&mut *bytes)[to..][..data.len()].copy_from_slice(data) });
    }

    /// Zeros from a place on.
    pub fn clear(&mut self, from: usize) {
        // SAFETY: `&mut self`: no other thread has the page.
        self.0.0.with_mut(|bytes| unsafe { (&mut *bytes)[from..].fill(0) });
    }
}

/// A value under a lock for readers and writers.
pub(crate) struct Guarded<T, L> {
    lock: L,
    value: core::cell::UnsafeCell<T>,
}

// SAFETY: `read` and `write` hold the lock: readers share the value (`Sync`), and one writer at a
// time has it, in any thread (`Send`).
unsafe impl<T: Send + Sync, L: RawRwLock> Sync for Guarded<T, L> {}
// SAFETY: no other thread can reach the value of a `Guarded` that moves, and the value may move
// (`T: Send`).
unsafe impl<T: Send, L: RawRwLock> Send for Guarded<T, L> {}

/// Releases a lock, also after a panic.
struct Release<'l, L: RawRwLock>(&'l L, bool);

impl<L: RawRwLock> Drop for Release<'_, L> {
    fn drop(&mut self) {
        // SAFETY: `Guarded` has acquired the lock for this, and releases it here only.
        unsafe { if self.1 { self.0.release_write() } else { self.0.release_read() } }
    }
}

impl<T, L: RawRwLock> Guarded<T, L> {
    pub fn new(value: T) -> Self {
        Self { lock: L::new(), value: core::cell::UnsafeCell::new(value) }
    }

    /// Reads, while no thread writes.
    pub fn read<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.lock.acquire_read();
        let _release = Release(&self.lock, false);
        // SAFETY: the lock is held for reading, so that no thread writes.
        f(unsafe { &*self.value.get() })
    }

    /// Writes, while no other thread reads or writes.
    pub fn write<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        self.lock.acquire_write();
        let _release = Release(&self.lock, true);
        // SAFETY: the lock is held for writing, so no other thread has the value.
        f(unsafe { &mut *self.value.get() })
    }
}
