//! References to inodes that are counted.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::inode::Inode;

/// A counted reference, or a counted link: the inode exists as long as it is not given back.
#[derive(Debug)]
pub(crate) struct Held {
    inode: NonNull<Inode>,
    is_link: bool,
}

/// A reference to an inode: an open file, a working directory. To be given back by
/// [`Cx::close`](crate::Cx::close); an inode whose reference is not given back is never freed.
#[must_use = "give it back by Cx::close"]
pub struct InodeHandle<'fs> {
    held: Held,
    fs: PhantomData<&'fs crate::Fs>,
}

// SAFETY: threads share inodes, and any of them may give back a counted reference.
unsafe impl Send for Held {}
// SAFETY: a shared `Held` gives out a shared inode.
unsafe impl Sync for Held {}

impl Held {
    /// One reference more, unless the inode has neither references nor names.
    pub fn acquire(inode: &Inode) -> Option<Self> {
        inode.acquire().then(|| Self { inode: NonNull::from(inode), is_link: false })
    }

    /// The one reference with which an inode is made.
    pub fn new(inode: Inode) -> Self {
        Self { inode: NonNull::from(Box::leak(Box::new(inode))), is_link: false }
    }

    /// The link of a name, which is the caller's: of a new name, or of one that an attempt removes.
    /// The latter is the caller's only if the attempt succeeds, and must not be used otherwise.
    pub fn link_of(inode: &Inode) -> Self {
        Self { inode: NonNull::from(inode), is_link: true }
    }

    /// Gives it back. If no link and no reference is left, the inode is the caller's, who
    /// [retires](super::Names::retire) it.
    pub fn release(self) -> Option<Box<Inode>> {
        // SAFETY: this reference or link is counted, so the inode exists. If none is left, no
        // thread gets another one, and this thread is the one that has seen that.
        unsafe {
            let inode = self.inode.as_ref();
            let is_nothing_left = if self.is_link { inode.remove_link() } else { inode.release() };
            is_nothing_left.then(|| Box::from_raw(self.inode.as_ptr()))
        }
    }

    /// A name of the inode is gone; the reference stays, so the inode is not freed.
    pub fn remove_link(&self) {
        let is_nothing_left = Deref::deref(self).remove_link();
        debug_assert!(!is_nothing_left, "a reference is counted");
    }
}

impl Deref for Held {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        // SAFETY: `self` is a counted reference or link, which is given back by consuming it.
        unsafe { self.inode.as_ref() }
    }
}

impl<'fs> InodeHandle<'fs> {
    pub(crate) fn new(held: Held) -> Self {
        Self { held, fs: PhantomData }
    }

    pub(crate) fn into_held(self) -> Held {
        self.held
    }
}

impl Deref for InodeHandle<'_> {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        &self.held
    }
}

impl core::fmt::Debug for InodeHandle<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        Inode::fmt(self, f)
    }
}
