//! Sections for operations that come without a handle: a handle for each core, which threads use in turns.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::config::Config;
use super::domain::Domain;
use super::handle::{Guard, Handle};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, cpu, order};

/// A domain, and a handle for each core.
///
/// What a [`Stall`](super::Stall) says of the thread that is waited for is the one that made this, whoever it was.
pub(crate) struct CpuHandles {
    handles: Box<[CachePadded<CpuHandle>]>,
    /// From a box; the handles refer to it.
    domain: NonNull<Domain>,
}

/// A handle that one thread uses at a time.
struct CpuHandle {
    taken: AtomicBool,
    /// Refers to the domain, which goes after it.
    handle: UnsafeCell<Handle<'static>>,
}

// SAFETY: `domain` leads to a box that this owns, and a `Domain` is `Send` and `Sync`. A handle in
// no section may be used by another thread: all that it has for itself is in its record, which goes
// from thread to thread in any case, see `ThreadRegistry`.
unsafe impl Send for CpuHandles {}
// SAFETY: a handle is reached through `Taken` only, of which `CpuHandle::taken` admits one at a time;
// its Acquire and Release order what one thread did with the handle before what the next does.
unsafe impl Sync for CpuHandles {}

impl CpuHandles {
    /// For a structure whose nodes are of this type.
    pub fn of_nodes<T>(config: Config) -> Self {
        let domain =
            NonNull::from(Box::leak(Box::new(Domain::of_nodes::<T>(config, 0).used_in_turns())));
        let handle = |_| {
            // SAFETY: the box is freed in `drop`, after the handles; the reference is theirs only.
            let handle = unsafe { domain.as_ref() }.register();
            CachePadded(CpuHandle {
                taken: AtomicBool::new(false),
                handle: UnsafeCell::new(handle),
            })
        };
        Self { handles: (0..cpu::count().max(1)).map(handle).collect(), domain }
    }

    /// Does something in a section.
    pub fn section<R>(&self, section: impl FnOnce(&Guard) -> R) -> R {
        let own = cpu::current() as usize;
        let at = |number| &self.handles[(own + number) % self.handles.len()];
        match (0..self.handles.len()).find_map(|number| at(number).take()) {
            Some(taken) => taken.section(section),
            // More threads are inside than there are cores.
            None => section(&self.domain().register().pin()),
        }
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        // SAFETY: the box is freed in `drop` only, which nothing borrowed from `self` outlives.
        unsafe { self.domain.as_ref() }
    }
}

impl Drop for CpuHandles {
    fn drop(&mut self) {
        drop(core::mem::take(&mut self.handles));
        // SAFETY: the pointer comes from `Box::leak` in `of_nodes`, and the handles, the only other
        // references, have been dropped on the line above.
        drop(unsafe { Box::from_raw(self.domain.as_ptr()) });
    }
}

impl CpuHandle {
    /// The handle, unless another thread uses it.
    fn take(&self) -> Option<Taken<'_>> {
        // Relaxed: a hint, which leaves the line of a handle that is taken where it is.
        let free = !self.taken.load(Ordering::Relaxed);
        // Acquire: partner of the Release below: what was done with the handle.
        let taken = free && !self.taken.swap(true, order!(Acquire, "cpu-handle-take"));
        taken.then(|| Taken(self))
    }
}

/// A handle that the caller uses. Dropped, it is free for another.
struct Taken<'a>(&'a CpuHandle);

impl Taken<'_> {
    fn section<R>(&self, section: impl FnOnce(&Guard) -> R) -> R {
        // SAFETY: `self` is the one `Taken` of this handle until it is dropped, and that is
        // reached through it only.
        self.0.handle.with_mut(|handle| {
            // SAFETY: `self` is the one `Taken` of this handle until it is dropped, and that is
            // reached through it only.
            let guard = unsafe { &*handle }.pin();
            let result = section(&guard);
            drop(guard); // here, where a destructor that panics does not lose the result
            result
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // Release: partner of the Acquire in `take`.
        self.0.taken.store(false, order!(Release, "cpu-handle-leave"));
    }
}

impl core::fmt::Debug for CpuHandles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CpuHandles").field("domain", self.domain()).finish_non_exhaustive()
    }
}
