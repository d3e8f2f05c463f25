//! Sections for operations that have no handle: one handle for each core, which threads use in
//! turn.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::config::Config;
use super::domain::Domain;
use super::handle::{Guard, Handle};
use crate::per_cpu::PerCpu;

/// A domain, and a handle for each core.
///
/// Several threads use one of these handles in turn. So a [`Stall`](super::Stall) may name any
/// thread that has used the handle.
pub(crate) struct CpuHandles {
    /// Refer to the domain, which goes after them.
    handles: PerCpu<Handle<'static>>,
    /// From a box.
    domain: NonNull<Domain>,
}

// SAFETY: `domain` leads to a box that this owns, and a `Domain` is `Send` and `Sync`.
unsafe impl Send for CpuHandles {}
// SAFETY: a `Domain` is `Sync`, and `PerCpu` lends handles to one thread at a time.
unsafe impl Sync for CpuHandles {}

impl CpuHandles {
    /// Creates one for a structure whose nodes are of this type.
    pub fn of_nodes<T>(config: Config) -> Self {
        let domain = NonNull::from(Box::leak(Box::new(
            Domain::of_nodes::<T>(config, 0).shared_by_threads(),
        )));
        // SAFETY: a handle in no section may be used by another thread: all that it has for itself
        // is in its record, which goes from thread to thread in any case, see `ThreadRegistry`.
        Self { handles: unsafe { PerCpu::new() }, domain }
    }

    /// Does something in a section.
    pub fn section<R>(&self, section: impl FnOnce(&Guard) -> R) -> R {
        // SAFETY: the box is freed in `drop`, after the handles; the reference is theirs only.
        let domain: &'static Domain = unsafe { self.domain.as_ref() };
        self.handles.with(
            || domain.register(),
            |handle| {
                let guard = handle.pin();
                let result = section(&guard);
                drop(guard); // here, where a destructor that panics does not lose the result
                result
            },
        )
    }

    /// The domain.
    pub fn domain(&self) -> &Domain {
        // SAFETY: the box is freed in `drop` only, which nothing borrowed from `self` outlives.
        unsafe { self.domain.as_ref() }
    }
}

impl Drop for CpuHandles {
    fn drop(&mut self) {
        self.handles.clear();
        // SAFETY: the pointer comes from `Box::leak` in `of_nodes`, and the handles, the only other
        // references, have been dropped on the line above.
        drop(unsafe { Box::from_raw(self.domain.as_ptr()) });
    }
}

impl core::fmt::Debug for CpuHandles {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CpuHandles").field("domain", self.domain()).finish_non_exhaustive()
    }
}
