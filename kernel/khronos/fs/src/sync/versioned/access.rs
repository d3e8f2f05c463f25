//! A thread's access: sessions, and what is made and freed.

use alloc::boxed::Box;

use manycore::session::{Conflict, Link, RawSession, Sessions, View};
use manycore::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::chains::{Chain, Chains};
use super::{Attempt, Grave, Head, Names, Node, Versioned, names};
use crate::inode::Inode;
use crate::sync::{self, Brought, Directory, Do, Mechanism, Shared, Stop};

impl<M: Sessions> Mechanism for Versioned<M> {
    fn register(&self) -> Box<dyn sync::Names + '_> {
        Box::new(Access { handle: self.domain.register(), chains: self.chains })
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

struct Access<S> {
    handle: S,
    chains: usize,
}

/// A session that is aborted when this is dropped, unless it was committed.
struct Open<'s, S: RawSession>(&'s mut S);

impl<'s, S: RawSession> Open<'s, S> {
    fn begin(handle: &'s mut S, view: View) -> Self {
        // SAFETY: no session of the handle is open: `Open` borrows it, and ends the session when it
        // is dropped.
        unsafe { handle.begin(view) };
        Self(handle)
    }

    fn commit(self) -> Result<(), Conflict> {
        let open = core::mem::ManuallyDrop::new(self);
        // SAFETY: `open` borrows the handle, and is not used or dropped any more; the session is
        // open.
        unsafe { core::ptr::read(&raw const open.0).commit() }
    }
}

impl<S: RawSession> Drop for Open<'_, S> {
    fn drop(&mut self) {
        // SAFETY: `begin` has begun the session, and `commit` has not ended it.
        unsafe { self.0.abort() };
    }
}

impl<S: RawSession> Access<S> {
    /// Frees an object in a session of its own. The session is repeated until it meets no conflict.
    fn free(&mut self, mut free: impl FnMut(&mut Attempt<'_, '_, S>) -> Result<(), Conflict>) {
        let mut attempts = 0;
        loop {
            let open = Open::begin(&mut self.handle, View::Latest);
            let ended = free(&mut Attempt::new(&mut *open.0));
            match ended.and_then(|()| open.commit()) {
                Ok(()) => break,
                Err(conflict) => sync::Names::back_off(self, conflict, attempts),
            }
            attempts += 1;
        }
        self.handle.end_dying();
    }

    /// Makes the chains of a directory without any, unless another thread does so first.
    fn make_chains(&mut self, directory: &Inode) {
        let open = Open::begin(&mut self.handle, View::Latest);
        let chain = |_| {
            let root = Node { next: Link::NULL, hash: 0, leaf: Link::NULL };
            // SAFETY: the session is open, and locks nothing, so that it commits.
            let root = Shared::new(unsafe { open.0.alloc(root) });
            Chain { root, changed: AtomicU64::new(0) }
        };
        let all = (0..self.chains).map(chain).collect();
        open.commit().expect("a session that has locked nothing meets no conflict");
        let made = Box::into_raw(Box::new(Chains { all, are_known: AtomicBool::new(false) }));
        let place = &names(directory).chains;
        let null = core::ptr::null_mut();
        // SeqCst: their contents, before they are found: partner of the Acquire in `chains`.
        if place.compare_exchange(null, made, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            // SAFETY: from the box above, and no thread has it.
            let unused = unsafe { Box::from_raw(made) };
            // SAFETY: in a session; the roots are valid, and no other thread has found them.
            self.free(|attempt| unsafe { attempt.free_roots(&unused.all) });
        }
    }
}

impl<S: RawSession> sync::Names for Access<S> {
    fn attempt(&mut self, view: View, brought: Brought<'_>, body: &mut Do<'_>) -> Result<(), Stop> {
        let open = Open::begin(&mut self.handle, view);
        let mut attempt = Attempt::new(&mut *open.0);
        let ended = body(&mut attempt, brought);
        let bare = attempt.bare.take();
        let ended = ended.and_then(|()| Ok(open.commit()?));
        self.handle.end_dying();
        if let Some(directory) = bare {
            self.make_chains(&directory);
            directory.release().into_iter().for_each(|inode| self.retire(inode));
        }
        ended
    }

    fn back_off(&mut self, conflict: Conflict, attempts: u32) {
        // SAFETY: sessions end with the call that has begun them.
        unsafe { self.handle.back_off(conflict, attempts) };
    }

    fn directory(&mut self) -> Directory {
        let open = Open::begin(&mut self.handle, View::Latest);
        // SAFETY: the session is open, and locks nothing, so that it commits.
        unsafe {
            let parent = core::ptr::null();
            let head = open.0.alloc(Head { parent, is_removed: false, has_no_roots: false });
            open.commit().expect("a session that has locked nothing meets no conflict");
            let chains = AtomicPtr::new(core::ptr::null_mut());
            Directory::Versioned(Names { head: Shared::new(head), chains })
        }
    }

    fn retire(&mut self, inode: Box<Inode>) {
        let place: *const Inode = &raw const *inode;
        let grave = self.handle.make_owned(Grave(inode));
        // SAFETY: in a session. The inode is in the grave until some time after the commit. It has
        // no links and no references, so no thread finds it, or its directory, any more; and it is
        // retired once.
        self.free(|attempt| unsafe {
            attempt.free_directory(&*place)?;
            attempt.session.free_owned(grave)
        });
    }
}
