//! Quiescent states: threads that count as pinned all the time, and report when they hold no
//! reference.

use super::domain::Domain;
use super::handle::{Guard, Handle};

/// A thread's access to a [`Domain`] in which critical sections cost nothing. The thread counts as
/// pinned all the time, and reports now and then that it holds no reference. A kernel reports where
/// it switches threads, a server between two requests.
///
/// The source is P. McKenney and J. Slingwine, "Read-copy update", PDCS 1998, where a grace period
/// ends when every CPU has switched threads. Of all kinds of RCU this one has the cheapest readers.
/// But a thread that does not report stops all others from freeing. So, before a thread sleeps or
/// computes for long, it goes [`offline`](Self::offline).
#[derive(Debug)]
pub struct QsbrHandle<'d> {
    handle: Handle<'d>,
}

impl Domain {
    /// The access to the domain for a calling thread that is going to call
    /// [`QsbrHandle::quiescent`] often.
    pub fn register_qsbr(&self) -> QsbrHandle<'_> {
        let handle = self.register();
        handle.pin_forever();
        QsbrHandle { handle }
    }
}

impl<'d> QsbrHandle<'d> {
    /// Begins a section, which costs nothing that another thread could see.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        self.handle.pin()
    }

    /// Reports that the thread holds no reference. The compiler checks that there are no guards.
    #[inline]
    pub fn quiescent(&mut self) {
        self.offline(|| ());
    }

    /// Does the same, for the library for C. Destructors that run meanwhile can use this handle,
    /// too, and may open sections of their own.
    ///
    /// # Safety
    ///
    /// There are no guards.
    pub unsafe fn quiescent_shared(&self) {
        self.handle.unpinned(|| ());
    }

    /// Runs a function for which no other thread waits, such as one that sleeps.
    #[inline]
    pub fn offline<R>(&mut self, f: impl FnOnce() -> R) -> R {
        self.handle.unpinned(f)
    }

    /// Whether the thread has expired objects to destroy, or has to scan for some.
    #[inline]
    pub(super) fn is_owing(&self) -> bool {
        self.handle.is_owing()
    }

    /// As [`Handle::synchronize`]; the thread is quiescent.
    pub fn synchronize(&mut self) {
        // SAFETY: no guard of this handle exists, since a guard borrows it and it is borrowed
        // mutably here; a forgotten guard protects nothing.
        unsafe { self.synchronize_shared() };
    }

    /// Does the same where destructors that run meanwhile can use this handle, too: for the library
    /// for C.
    ///
    /// # Safety
    ///
    /// There are no guards.
    pub unsafe fn synchronize_shared(&self) {
        self.handle.forget_guards();
        self.handle.unpinned(|| self.handle.synchronize_outside());
    }
}
