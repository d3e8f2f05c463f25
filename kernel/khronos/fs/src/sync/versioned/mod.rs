//! Directories whose chains are objects of sessions, by any mechanism that has these.
//!
//! ```text
//!   Inode -> Names { head, chains } -> root -> node -> node      versioned, in sessions
//!                      |                        |       |
//!                      v                      leaf    leaf       name and inode: never changed
//!                    head { parent, is_removed, ... }
//! ```
//!
//! # Views
//!
//! A changing attempt sees the latest version of each object, and locks the objects on which it
//! depends: the node before a name's position, a name's own node, a directory's head. A locked
//! object is the latest until the commit, and all locks are held together before it, so the commits
//! take effect as if one had run after the other. No thread waits for a lock: if one is taken, the
//! thread gives up all of its own, and begins again.
//!
//! # Chains
//!
//! A directory has chains from its first name on: the thread that is about to make that name makes
//! them, in a session of its own, and then begins again. So a directory that never had a name is
//! removed without reading chains. The removing thread locks the head and then checks whether there
//! are any chains. The thread that makes a name has seen chains, and then reads the head, to see
//! whether the directory is being removed. (It need not if an earlier thread has done so.) So one
//! of the two threads sees the other.
//!
//! # Directories that are removed
//!
//! `remove` frees the roots of the chains, in the commit that removes the name: a later insertion
//! finds a freed root, and begins again. Roots are only followed in an attempt that has found the
//! directory by a name, or has seen in its head that it exists. So the commit that frees them is
//! later than the attempt's begin, and they are valid until its end. The head is freed with the
//! inode, and so are chains that were made too late.
//!
//! # Directories that are moved
//!
//! Two moves that run together could make a cycle: `a` below `b`, and `b` below `a`. A move locks
//! the head of the directory that it moves, and *after that* reads the heads from its target up to
//! the root. It fails if it meets its own directory, and begins anew if one of them is locked. So
//! of moves that could close a cycle together, each one's directory is on the path of the one
//! before: not all of them can have read their path before the next one has locked its head, and
//! one that reads later finds the lock, or the new parent. Nothing is locked that other moves read:
//! moves between the same two directories do not meet at all.

mod access;
mod chains;

use alloc::boxed::Box;
use core::marker::PhantomData;

use manycore::mutation;
use manycore::session::{Conflict, Link, RawSession, Sessions, owned};
use manycore::sync::atomic::{Ordering, fence};

pub(crate) use self::chains::Names;
use self::chains::{Chain, Chains};
use super::held::Held;
use super::{Directory, EntryName, InodeRef, Seen, Stop, Tx};
use crate::errno::Errno;
use crate::inode::{Inode, set_time};
use crate::name::{Key, Name, chain_of};

/// A directory's state apart from its names.
#[derive(Clone, Copy)]
struct Head {
    /// Null for the root.
    parent: *const Inode,
    is_removed: bool,
    /// Whether the roots of its chains were freed.
    has_no_roots: bool,
}

/// A name in a chain, in the order of hashes and then of names; or the chain's root, without a
/// name.
#[derive(Clone, Copy)]
struct Node {
    next: Link<Node>,
    hash: u64,
    leaf: Link<Leaf>,
}

/// What a name leads to.
struct Leaf {
    inode: *const Inode,
    name: Name,
}

// SAFETY: threads share inodes; a leaf only has the address of one, which is counted.
unsafe impl Send for Leaf {}
// SAFETY: a shared leaf gives the address of an inode, which threads share.
unsafe impl Sync for Leaf {}

/// An inode that only open sessions may still have.
struct Grave(#[expect(dead_code, reason = "is dropped")] Box<Inode>);

/// A name's place.
struct Spot {
    before: Link<Node>,
    /// The first node at or behind it, or none.
    node: Link<Node>,
    /// Where it leads, if the name is there.
    leaf: Link<Leaf>,
}

fn names(directory: &Inode) -> &Names {
    match directory.directory() {
        Ok(Directory::Versioned(names)) => names,
        _ => unreachable!("a directory of this mechanism"),
    }
}

/// A mechanism with sessions.
pub(crate) struct Versioned<M> {
    domain: M,
    chains: usize,
}

impl<M: Sessions> Versioned<M> {
    /// With this many chains a directory.
    pub fn new(domain: M, chains: usize) -> Self {
        Self { domain, chains }
    }
}

/// An open session. Its results are valid for `'v`.
struct Attempt<'s, 'v, S> {
    session: &'s mut S,
    /// A directory that needs chains before the next attempt.
    bare: Option<Held>,
    view: PhantomData<fn(&'v ()) -> &'v ()>,
}

impl<'s, S> Attempt<'s, '_, S> {
    fn new(session: &'s mut S) -> Self {
        Self { session, bare: None, view: PhantomData }
    }
}

impl<'v, S: RawSession> Attempt<'_, 'v, S> {
    /// # Safety
    ///
    /// The leaf was found in this session, or is part of an object that was.
    unsafe fn leaf(&self, leaf: Link<Leaf>) -> &'v Leaf {
        // SAFETY: objects that a session has found are valid until its end (contract of this
        // function).
        unsafe { owned(leaf) }
    }

    /// # Safety
    ///
    /// As of [`leaf`](Self::leaf).
    unsafe fn found(&self, leaf: Link<Leaf>) -> InodeRef<'v> {
        // SAFETY: the name's inode has a link until some time after the commit that takes the name
        // out. It is retired after that, by a commit that is later than this session's begin.
        unsafe { InodeRef(&*self.leaf(leaf).inode) }
    }

    fn head(&self, directory: &Inode) -> Head {
        // SAFETY: in a session, and the head is there for as long as the inode is.
        unsafe { *self.session.deref(*names(directory).head.get()) }
    }

    fn spot(&self, directory: InodeRef<'v>, key: Key<'_>) -> Spot {
        let Key { bytes, hash } = key;
        let Some(chain) = names(directory.inode()).chain(hash) else {
            return Spot { before: Link::NULL, node: Link::NULL, leaf: Link::NULL };
        };
        let mut before = *chain.root.get();
        // SAFETY: in a session, in which the directory was found: so its roots are valid, and so
        // are objects found from there.
        unsafe {
            let mut node = (*self.session.deref(before)).next;
            while !node.is_null() {
                let this = *self.session.deref(node);
                if this.hash > hash {
                    break;
                }
                if this.hash == hash {
                    match self.leaf(this.leaf).name.bytes().cmp(bytes) {
                        core::cmp::Ordering::Less => {}
                        core::cmp::Ordering::Equal => {
                            return Spot { before, node, leaf: this.leaf };
                        }
                        core::cmp::Ordering::Greater => break,
                    }
                }
                before = node;
                node = this.next;
            }
            Spot { before, node, leaf: Link::NULL }
        }
    }

    /// The position, which is in a chain, if the name still leads to what was seen.
    fn spot_as_seen(&mut self, seen: &Seen<'v>) -> Result<Spot, Stop> {
        let Seen { place: EntryName { directory, key }, inode } = *seen;
        // The mistake: another thread makes the chains after the search, which then found no node.
        let early = mutation!("khronos-late-chains").then(|| self.spot(directory, key));
        if inode.is_none() {
            self.has_chains(directory)?;
        }
        let spot = early.unwrap_or_else(|| self.spot(directory, key));
        assert!(!spot.before.is_null(), "a position without a chain");
        let is_same = match inode {
            None => spot.leaf.is_null(),
            // SAFETY: this session has found the leaf, which stays until its end.
            Some(inode) => !spot.leaf.is_null() && unsafe { self.found(spot.leaf).is(&inode) },
        };
        if is_same { Ok(spot) } else { Err(Stop::Again(Conflict::Changed)) }
    }

    /// Checks that the directory has chains. Call it before the position of a missing name is
    /// searched, because another thread may make the chains meanwhile; and before that is locked,
    /// because a removing thread conflicts with this session there.
    fn has_chains(&mut self, directory: InodeRef<'v>) -> Result<(), Stop> {
        let names = names(directory.inode());
        let Some(chains) = names.chains() else {
            self.bare = Held::acquire(&directory);
            return Err(Stop::Again(Conflict::Changed));
        };
        // Relaxed, and below: the storing thread has executed the fence, after it saw the chains.
        if chains.are_known.load(Ordering::Relaxed) || mutation!("khronos-unknown-chains") {
            return Ok(());
        }
        // SeqCst: partner of the fence in `remove`.
        fence(Ordering::SeqCst);
        // SAFETY: in a session, and the head is there for as long as the inode is.
        if unsafe { (*self.session.read_unlocked(*names.head.get())?).is_removed } {
            return Err(Stop::Again(Conflict::Freed));
        }
        chains.are_known.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A leaf, which is there if the session commits.
    fn make_leaf(&mut self, inode: &Inode, name: &[u8]) -> Link<Leaf> {
        let leaf = self.session.make_owned(Leaf { inode, name: Name::new(name) });
        // SAFETY: in a session; made above, and no thread has a link.
        unsafe { self.session.claim_owned(leaf) };
        leaf
    }

    /// Locks the node before a position, which has the link to it.
    ///
    /// # Safety
    ///
    /// The spot was found in this session.
    unsafe fn lock_before(&mut self, spot: &Spot) -> Result<*mut Node, Stop> {
        // SAFETY: in a session, in which the node was found (contract of this function).
        unsafe {
            let before = self.session.try_lock(spot.before)?;
            if (*before).next != spot.node {
                return Err(Stop::Again(Conflict::Changed));
            }
            Ok(before)
        }
    }

    /// Frees a directory's data here, if the inode is a directory.
    ///
    /// # Safety
    ///
    /// No thread finds the inode any more after the commit.
    unsafe fn free_directory(&mut self, inode: &Inode) -> Result<(), Conflict> {
        let Ok(Directory::Versioned(names)) = inode.directory() else { return Ok(()) };
        // SAFETY: in a session; the head is valid, and so are the roots that it does not mark as
        // missing. By the contract of this function no thread finds them any more.
        unsafe {
            if !self.head(inode).has_no_roots {
                self.free_roots(names.all())?;
            }
            self.session.free(*names.head.get())
        }
    }

    /// # Safety
    ///
    /// In a session in which the roots are valid; no thread finds them after the commit.
    unsafe fn free_roots(&mut self, chains: &[Chain]) -> Result<(), Conflict> {
        // SAFETY: the session has found the roots, and no thread finds them after the commit
        // (contract of this function).
        chains.iter().try_for_each(|chain| unsafe { self.session.free(*chain.root.get()) })
    }
}

impl<'v, S: RawSession> Tx<'v> for Attempt<'_, 'v, S> {
    fn enter(&self, inode: &'v Inode) -> Result<InodeRef<'v>, Stop> {
        // The roots of a directory that is there are freed by a commit that this session does not
        // see, if at all.
        if inode.is_directory() && self.head(inode).is_removed {
            return Err(Errno::NoEntry.into());
        }
        Ok(InodeRef(inode))
    }

    fn find(&self, directory: InodeRef<'v>, key: Key<'_>) -> Option<InodeRef<'v>> {
        let leaf = self.spot(directory, key).leaf;
        // SAFETY: this session has found the leaf, which stays until its end.
        (!leaf.is_null()).then(|| unsafe { self.found(leaf) })
    }

    fn parent(&self, directory: InodeRef<'v>) -> Option<InodeRef<'v>> {
        let Head { parent, is_removed, .. } = self.head(&directory);
        // SAFETY: null, or the parent of a directory that exists in this session's view. The
        // directory has a name in the parent, so the parent was not removed before the session's
        // begin.
        (!is_removed).then(|| unsafe { parent.as_ref() }.map_or(directory, InodeRef))
    }

    fn each(
        &self,
        directory: InodeRef<'v>,
        from: u64,
        visit: &mut dyn FnMut(Key<'_>, InodeRef<'v>) -> bool,
    ) {
        let Some(Chains { all, .. }) = names(directory.inode()).chains() else { return };
        for chain in &all[chain_of(from, all.len())..] {
            // SAFETY: in a session, in which the directory was found: so its roots are valid, and
            // so are objects found from there.
            unsafe {
                let mut node = (*self.session.deref(*chain.root.get())).next;
                while !node.is_null() {
                    let this = *self.session.deref(node);
                    let key = Key { bytes: self.leaf(this.leaf).name.bytes(), hash: this.hash };
                    if this.hash >= from && !visit(key, self.found(this.leaf)) {
                        return;
                    }
                    node = this.next;
                }
            }
        }
    }

    fn prepare(
        &mut self,
        _seen: &[Seen<'v>],
        _removed: Option<InodeRef<'v>>,
        _is_move: bool,
    ) -> Result<(), Stop> {
        Ok(())
    }

    fn confirm(&mut self, seen: &[Seen<'v>]) -> Result<(), Stop> {
        for seen in seen {
            let spot = self.spot_as_seen(seen)?;
            // SAFETY: in a session, in which the nodes were found.
            unsafe {
                if seen.inode.is_some() {
                    self.session.try_lock_const(spot.node)?;
                    if (*self.session.deref(spot.node)).leaf != spot.leaf {
                        return Err(Stop::Again(Conflict::Changed));
                    }
                } else {
                    self.session.try_lock_const(spot.before)?;
                    if (*self.session.deref(spot.before)).next != spot.node {
                        return Err(Stop::Again(Conflict::Changed));
                    }
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, seen: [Seen<'v>; 2]) -> Result<(), Stop> {
        if mutation!("khronos-one-look") {
            return Ok(());
        }
        if seen.iter().any(|seen| seen.inode.is_none()) {
            return self.confirm(&seen);
        }
        let [one, two] = &seen;
        let before = self.spot_as_seen(one)?.leaf;
        self.spot_as_seen(two)?;
        // A leaf that a name has lost never comes back. If the name has it now, it has had it all
        // the time, and so also when the other name was read.
        let is_same = self.spot_as_seen(one)?.leaf == before;
        if is_same { Ok(()) } else { Err(Stop::Again(Conflict::Changed)) }
    }

    fn change(&mut self, seen: &Seen<'v>, to: Option<&'v Inode>, now: u64) -> Result<(), Stop> {
        let spot = self.spot_as_seen(seen)?;
        let Key { bytes, hash } = seen.place.key;
        // SAFETY: in a session, in which the nodes were found. No thread finds a freed node after
        // the commit: the node, and the one that leads to it, are locked; and a leaf has one node.
        unsafe {
            match (seen.inode, to) {
                (None, None) => {}
                (None, Some(inode)) => {
                    let before = self.lock_before(&spot)?;
                    let leaf = self.make_leaf(inode, bytes);
                    (*before).next = self.session.alloc(Node { next: spot.node, hash, leaf });
                }
                (Some(_), Some(inode)) => {
                    let node = self.session.try_lock(spot.node)?;
                    if (*node).leaf != spot.leaf {
                        return Err(Stop::Again(Conflict::Changed));
                    }
                    self.session.free_owned(spot.leaf)?;
                    (*node).leaf = self.make_leaf(inode, bytes);
                }
                (Some(_), None) => {
                    let before = self.lock_before(&spot)?;
                    self.session.free(spot.node)?;
                    let node = *self.session.deref(spot.node);
                    if node.leaf != spot.leaf {
                        return Err(Stop::Again(Conflict::Changed));
                    }
                    self.session.free_owned(spot.leaf)?;
                    (*before).next = node.next;
                }
            }
        }
        if let Some(chain) = names(seen.place.directory.inode()).chain(hash) {
            set_time(&chain.changed, now);
        }
        Ok(())
    }

    fn remove(&mut self, directory: InodeRef<'v>) -> Result<(), Stop> {
        let names = names(directory.inode());
        // SAFETY: in a session, in which the directory was found: so its roots are there. A root
        // that is freed is not found after the commit, see the module's page.
        unsafe {
            let is_empty =
                |session: &S, chain: &Chain| (*session.deref(*chain.root.get())).next.is_null();
            if !names.all().iter().all(|chain| is_empty(self.session, chain)) {
                return Err(Errno::NotEmpty.into());
            }
            let head = self.session.try_lock(*names.head.get())?;
            if (*head).is_removed {
                return Err(Stop::Again(Conflict::Freed));
            }
            (*head).is_removed = true;
            // SeqCst: partner of the fence in `has_chains`.
            fence(Ordering::SeqCst);
            let chains = names.all();
            // The mistake: what is inserted meanwhile is lost.
            if mutation!("khronos-roots-stay") {
                return Ok(());
            }
            (*head).has_no_roots = !chains.is_empty();
            for chain in chains {
                self.session.free(*chain.root.get())?;
                if !is_empty(self.session, chain) {
                    return Err(Errno::NotEmpty.into());
                }
            }
        }
        Ok(())
    }

    fn set_parent(&mut self, directory: &'v Inode, parent: InodeRef<'v>) -> Result<(), Stop> {
        // SAFETY: in a session; the head is there for as long as the inode is.
        let head = unsafe { &mut *self.session.try_lock(*names(directory).head.get())? };
        head.parent = parent.inode();
        Ok(())
    }

    fn move_below(
        &mut self,
        directory: InodeRef<'v>,
        from: InodeRef<'v>,
        to: InodeRef<'v>,
    ) -> Result<(), Stop> {
        // SAFETY: in a session; heads are there for as long as their inodes are.
        let head = unsafe { &mut *self.session.try_lock(*names(directory.inode()).head.get())? };
        if head.is_removed || !core::ptr::eq(head.parent, from.inode()) {
            return Err(Stop::Again(Conflict::Changed));
        }
        head.parent = to.inode();
        let mut above = to;
        while !above.is(&directory) {
            // SAFETY: in a session; heads are there for as long as their inodes are, and a parent
            // is there if the directory below it is, as in `parent`.
            unsafe {
                let head = *names(above.inode()).head.get();
                // The mistake: a move that is under way is not met.
                let Head { parent, is_removed, .. } = if mutation!("khronos-no-meeting") {
                    *self.session.deref(head)
                } else {
                    *self.session.read_unlocked(head)?
                };
                if is_removed {
                    return Err(Stop::Again(Conflict::Freed));
                }
                let Some(parent) = parent.as_ref() else { return Ok(()) };
                above = InodeRef(parent);
            }
        }
        Err(Errno::Invalid.into())
    }
}
