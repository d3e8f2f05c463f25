//! How a thread's readers tell that they have left: the choice of a structure, by type.

use core::fmt;

use super::domain::Domain;
use super::handle::{Guard, Handle};
use super::online::Online;

/// How readers tell that they have left.
///
/// # Safety
///
/// A section's guard is of the domain that its handle was registered with: what is read and retired
/// there relies on it.
pub unsafe trait Flavour {
    /// What a thread has sections with.
    type Handle<'d>: fmt::Debug;

    /// The calling thread's access to the domain.
    fn register(domain: &Domain) -> Self::Handle<'_>;

    /// A section.
    fn section<R>(handle: &mut Self::Handle<'_>, f: impl FnOnce(&Guard) -> R) -> R;
}

/// At the end of each section, as [`Handle::pin`] does.
#[derive(Debug)]
pub struct Pinned;

// SAFETY: `Handle::pin` makes the guard, and `register` has made that handle for its domain.
unsafe impl Flavour for Pinned {
    type Handle<'d> = Handle<'d>;

    fn register(domain: &Domain) -> Handle<'_> {
        domain.register()
    }

    #[inline]
    fn section<R>(handle: &mut Handle<'_>, f: impl FnOnce(&Guard) -> R) -> R {
        let guard = handle.pin();
        let result = f(&guard);
        drop(guard); // here, where a destructor that panics does not lose the result
        result
    }
}

/// After some tens of sections, and after each that leaves some objects to destroy, by an
/// [`Online`] of its own. Sections of readers cost less. But a thread that keeps its handle and
/// does nothing with it keeps all garbage from being freed: for threads that are at work all the
/// time.
#[derive(Debug)]
pub struct Quiescent;

/// A thread's access to a domain that says by itself, now and then, that the thread has nothing.
#[derive(Debug)]
pub struct Counted<'d> {
    online: Online<'d>,
    sections: u32,
}

/// After how many sections at the latest: few enough that others are not kept waiting for long.
const SECTIONS: u32 = 64;

// SAFETY: `Online::pin` makes the guard, and `register_online` has made that handle for its domain.
unsafe impl Flavour for Quiescent {
    type Handle<'d> = Counted<'d>;

    fn register(domain: &Domain) -> Counted<'_> {
        Counted { online: domain.register_online(), sections: 0 }
    }

    #[inline]
    fn section<R>(handle: &mut Counted<'_>, f: impl FnOnce(&Guard) -> R) -> R {
        let guard = handle.online.pin();
        let result = f(&guard);
        drop(guard);
        handle.sections += 1;
        // Garbage is freed as soon as under the other flavour, so that the allocator gives out
        // memory that it has just been given.
        if handle.sections == SECTIONS || handle.online.is_owing() {
            handle.sections = 0;
            handle.online.quiescent();
        }
        result
    }
}
