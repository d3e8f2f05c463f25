//! When a thread reports that its readers have left. A structure's user chooses by a type.

use core::fmt;

use super::domain::Domain;
use super::handle::{Guard, Handle};
use super::qsbr::QsbrHandle;

/// When a thread reports that its readers have left their critical sections.
///
/// # Safety
///
/// A section's guard belongs to the domain with which its handle was registered. Reads and
/// retirements in the section rely on it.
pub unsafe trait Mode {
    /// What a thread has sections with.
    type Handle<'d>: fmt::Debug;

    /// The calling thread's access to the domain.
    fn register(domain: &Domain) -> Self::Handle<'_>;

    /// A section.
    fn section<R>(handle: &mut Self::Handle<'_>, f: impl FnOnce(&Guard) -> R) -> R;
}

/// Epoch-based: at the end of each critical section, as [`Handle::pin`] does.
#[derive(Debug)]
pub struct Epoch;

// SAFETY: `Handle::pin` makes the guard, and `register` has made that handle for its domain.
unsafe impl Mode for Epoch {
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

/// Based on quiescent states (QSBR): a [`QsbrHandle`] reports one after every 64 critical sections,
/// and after each section that leaves some objects to destroy. Readers' sections cost less. But a
/// thread that keeps its handle and does nothing with it keeps all garbage from being freed. So
/// this mode is for threads that are at work all the time.
#[derive(Debug)]
pub struct Qsbr;

/// A thread's access to a domain that reports a quiescent state by itself after every 64 sections.
#[derive(Debug)]
pub struct AutoQsbrHandle<'d> {
    qsbr: QsbrHandle<'d>,
    sections: u32,
}

/// A quiescent state is reported after this many sections at the latest: few enough that other
/// threads do not wait for long.
const SECTIONS: u32 = 64;

// SAFETY: `QsbrHandle::pin` makes the guard, and `register_qsbr` has made that handle for its
// domain.
unsafe impl Mode for Qsbr {
    type Handle<'d> = AutoQsbrHandle<'d>;

    fn register(domain: &Domain) -> AutoQsbrHandle<'_> {
        AutoQsbrHandle { qsbr: domain.register_qsbr(), sections: 0 }
    }

    #[inline]
    fn section<R>(handle: &mut AutoQsbrHandle<'_>, f: impl FnOnce(&Guard) -> R) -> R {
        let guard = handle.qsbr.pin();
        let result = f(&guard);
        drop(guard);
        handle.sections += 1;
        // Garbage is freed as early as in the other mode, so that the allocator reuses memory that
        // it has just got back.
        if handle.sections == SECTIONS || handle.qsbr.is_owing() {
            handle.sections = 0;
            handle.qsbr.quiescent();
        }
        result
    }
}
