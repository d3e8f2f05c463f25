//! A thread's access: sessions, and what is made and freed.

use alloc::boxed::Box;
use core::marker::PhantomData;

use manycore::session::{Conflict, Link, RawSession, Sessions, View};
use manycore::sync::atomic::AtomicU64;

use super::{Attempt, Chain, Grave, Head, Names, Node, Versioned};
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
        // SAFETY: the handle is borrowed by `open`, which is not used or dropped any more; the
        // session is open.
        unsafe { core::ptr::read(&raw const open.0).commit() }
    }
}

impl<S: RawSession> Drop for Open<'_, S> {
    fn drop(&mut self) {
        // SAFETY: `begin` has begun the session, and `commit` has not ended it.
        unsafe { self.0.abort() };
    }
}

impl<S: RawSession> sync::Names for Access<S> {
    fn attempt(&mut self, view: View, brought: Brought<'_>, body: &mut Do<'_>) -> Result<(), Stop> {
        let open = Open::begin(&mut self.handle, view);
        let mut attempt = Attempt { session: &mut *open.0, view: PhantomData };
        let ended = body(&mut attempt, brought);
        let ended = ended.and_then(|()| Ok(open.commit()?));
        self.handle.end_dying();
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
            let head = open.0.alloc(Head { parent: core::ptr::null(), is_removed: false });
            let chain = |_| Chain {
                root: Shared::new(open.0.alloc(Node {
                    next: Link::NULL,
                    hash: 0,
                    leaf: Link::NULL,
                })),
                changed: AtomicU64::new(0),
            };
            let chains = (0..self.chains).map(chain).collect();
            open.commit().expect("a session that has locked nothing meets no conflict");
            Directory::Versioned(Names { head: Shared::new(head), chains })
        }
    }

    fn retire(&mut self, inode: Box<Inode>) {
        let place: *const Inode = &raw const *inode;
        let grave = self.handle.make_owned(Grave(inode));
        let mut attempts = 0;
        loop {
            let open = Open::begin(&mut self.handle, View::Latest);
            // SAFETY: the session is open. The inode is in the grave until some time after the
            // commit; it has no links and no references, so that nobody finds it, or its directory,
            // any more; and it is retired once.
            let ended = unsafe {
                Attempt { session: &mut *open.0, view: PhantomData }
                    .free_directory(&*place)
                    .and_then(|()| open.0.free_owned(grave))
            };
            match ended.and_then(|()| open.commit()) {
                Ok(()) => break,
                Err(conflict) => sync::Names::back_off(self, conflict, attempts),
            }
            attempts += 1;
        }
        self.handle.end_dying();
    }
}
