//! How names are looked up and changed, by each mechanism. Here, and nowhere else in this crate, is
//! code that the compiler cannot check.
//!
//! | module | what is in it |
//! |---|---|
//! | [`versioned`] | directories whose chains are objects of sessions: `rlu` and `mvrlu` |
//! | [`locked`] | directories whose chains have locks: `dirlock`, `lock` and `rcu` |
//! | `shared`, `held`, `page`, `lock` | plain data, references that are counted, pages, locks |
//! | `gate` | what stops updates for the moment in which they are recorded |
//!
//! A call is written once, against [`Tx`]. It runs in attempts: an attempt sees names, and changes
//! some of them, all at once (`rlu`, `mvrlu`) or under all locks that it needs (the others). What
//! it has found has a lifetime that ends with the attempt: so nothing that was found can get into
//! the next one.

pub(crate) mod gate;
pub(crate) mod held;
mod lock;
pub(crate) mod locked;
pub(crate) mod page;
mod shared;
pub(crate) mod versioned;

use alloc::boxed::Box;
use core::ops::Deref;

use manycore::session::{Conflict, View};

pub(crate) use self::shared::{Line, Shared};
use crate::errno::Errno;
use crate::inode::{Inode, Kind};
use crate::name::Key;

/// Why an attempt ends without a result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The attempt has conflicted with another one, and has to be repeated.
    Again(Conflict),
    /// The call fails.
    Fail(Errno),
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Again(conflict)
    }
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Fail(errno)
    }
}

/// An inode that an attempt has found. It stays valid until the attempt's end. If it is a
/// directory, the attempt may look up names in it.
#[derive(Clone, Copy)]
pub(crate) struct InodeRef<'v>(&'v Inode);

impl<'v> InodeRef<'v> {
    pub fn inode(self) -> &'v Inode {
        self.0
    }

    /// The root, which is never removed.
    pub fn root(brought: &Brought<'v>) -> Self {
        Self(brought.root)
    }

    pub fn is(self, other: &Inode) -> bool {
        core::ptr::eq(self.0, other)
    }
}

impl Deref for InodeRef<'_> {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        self.0
    }
}

/// A name in a directory, whether or not there is such an entry.
#[derive(Clone, Copy)]
pub(crate) struct EntryName<'v> {
    pub directory: InodeRef<'v>,
    pub key: Key<'v>,
}

impl EntryName<'_> {
    /// Whether it is the same name of the same directory.
    pub fn is(&self, other: &Self) -> bool {
        self.directory.is(&other.directory) && self.key.bytes == other.key.bytes
    }
}

/// The result of looking up a name.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'v> {
    pub place: EntryName<'v>,
    pub inode: Option<InodeRef<'v>>,
}

/// Where a call begins to follow a path.
#[derive(Clone, Copy)]
pub(crate) struct Start<'v> {
    pub directory: &'v Inode,
    pub path: &'v [u8],
}

/// What a call brings into its attempts.
#[derive(Clone, Copy)]
pub(crate) struct Brought<'v> {
    pub from: Start<'v>,
    pub to: Start<'v>,
    /// One that is to get a name.
    pub inode: &'v Inode,
    pub root: &'v Inode,
    /// The time, for what is changed.
    pub now: u64,
    /// The seed of the hashes of names.
    pub seed: u64,
}

/// An attempt.
pub(crate) trait Tx<'v> {
    /// The call brings this inode.
    ///
    /// # Errors
    ///
    /// If it is a directory that was removed.
    fn enter(&self, inode: &'v Inode) -> Result<InodeRef<'v>, Stop>;

    /// What a name leads to. The directory is one.
    fn find(&self, directory: InodeRef<'v>, key: Key<'_>) -> Option<InodeRef<'v>>;

    /// The directory above; the root is above itself. `None` if it was removed.
    fn parent(&self, directory: InodeRef<'v>) -> Option<InodeRef<'v>>;

    /// Visits names in the order of their hashes, from the first one with at least this hash, until
    /// `visit` returns true.
    fn each(
        &self,
        directory: InodeRef<'v>,
        from: u64,
        visit: &mut dyn FnMut(Key<'_>, InodeRef<'v>) -> bool,
    );

    /// Announces the attempt's changes: it changes these names, removes the directory to which one
    /// of them leads, or gives a directory another parent.
    ///
    /// # Errors
    ///
    /// If something has changed since it was seen.
    fn prepare(
        &mut self,
        seen: &[Seen<'v>],
        removed: Option<InodeRef<'v>>,
        is_move: bool,
    ) -> Result<(), Stop>;

    /// Makes the seen state hold at one moment, from now until the end of the attempt.
    ///
    /// # Errors
    ///
    /// If it is not so any more.
    fn confirm(&mut self, seen: &[Seen<'v>]) -> Result<(), Stop>;

    /// Checks that the seen state of two names held at one moment of this attempt, which changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If it may not have been.
    fn judge(&mut self, seen: [Seen<'v>; 2]) -> Result<(), Stop>;

    /// Makes a name lead to another inode, or to none. It takes effect with the attempt, and is
    /// called after everything else that may fail.
    ///
    /// # Errors
    ///
    /// If it does not lead any more where it was seen to lead.
    fn change(&mut self, seen: &Seen<'v>, to: Option<&'v Inode>, now: u64) -> Result<(), Stop>;

    /// Ends a directory. Prepared.
    ///
    /// # Errors
    ///
    /// [`Errno::NotEmpty`].
    fn remove(&mut self, directory: InodeRef<'v>) -> Result<(), Stop>;

    /// A directory that no other thread knows yet gets its parent.
    ///
    /// # Errors
    ///
    /// If there is no room for it now.
    fn set_parent(&mut self, directory: &'v Inode, parent: InodeRef<'v>) -> Result<(), Stop>;

    /// A directory gets another parent. Prepared.
    ///
    /// # Errors
    ///
    /// [`Errno::Invalid`] if that is the directory itself, or below it.
    fn move_below(
        &mut self,
        directory: InodeRef<'v>,
        from: InodeRef<'v>,
        to: InodeRef<'v>,
    ) -> Result<(), Stop>;
}

/// What is done in an attempt.
pub(crate) type Do<'d> = dyn for<'v> FnMut(&mut dyn Tx<'v>, Brought<'v>) -> Result<(), Stop> + 'd;

/// A thread's access to the names.
pub(crate) trait Names {
    /// Makes an attempt. If it returns with success, all is done; otherwise nothing is.
    fn attempt(&mut self, view: View, brought: Brought<'_>, body: &mut Do<'_>) -> Result<(), Stop>;

    /// Waits between two attempts. The more there were, the longer it waits.
    fn back_off(&mut self, conflict: Conflict, attempts: u32);

    /// Makes a directory without names. Even if no other thread ever sees it, it has to be
    /// [retired](Self::retire).
    fn directory(&mut self) -> Directory;

    /// Drops the inode when no attempt uses it any more. The inode has no links and no references,
    /// and is retired once.
    fn retire(&mut self, inode: Box<Inode>);
}

/// A mechanism.
pub(crate) trait Mechanism: Send + Sync {
    /// The calling thread's access.
    fn register(&self) -> Box<dyn Names + '_>;

    /// Visits what it has counted.
    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64));
}

/// The names in a directory.
pub(crate) enum Directory {
    Versioned(versioned::Names),
    Locked(Box<locked::Names>),
}

impl Directory {
    /// The time of the last change of its names. It is set before the changing call returns.
    pub fn modified(&self) -> u64 {
        match self {
            Self::Versioned(names) => names.modified(),
            Self::Locked(names) => names.modified(),
        }
    }
}

/// Whether moving an inode from one directory to another changes its parent.
pub(crate) fn changes_parent(inode: &Inode, from: InodeRef<'_>, to: InodeRef<'_>) -> bool {
    inode.kind() == Kind::Directory && !from.is(to.inode())
}
