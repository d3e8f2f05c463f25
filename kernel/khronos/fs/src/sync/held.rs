//! References to inodes that are counted.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::inode::Inode;

/// A counted reference, or a counted link. The inode exists until this is released.
#[derive(Debug)]
pub(crate) struct Held {
    inode: NonNull<Inode>,
    is_link: bool,
}

/// A reference to an inode: an open file, a working directory. Release it by
/// [`Cx::close`](crate::Cx::close): otherwise the inode is never freed.
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
    /// Adds a reference, unless the inode has neither references nor names.
    pub fn acquire(inode: &Inode) -> Option<Self> {
        inode.acquire().then(|| Self { inode: NonNull::from(inode), is_link: false })
    }

    /// The one reference with which an inode is made.
    pub fn new(inode: Inode) -> Self {
        Self { inode: NonNull::from(Box::leak(Box::new(inode))), is_link: false }
    }

    /// The link of a name: of a new one, or of one that an attempt removes. In the latter case the
    /// caller owns the link only if the attempt succeeds, and must not use it otherwise.
    pub fn link_of(inode: &Inode) -> Self {
        Self { inode: NonNull::from(inode), is_link: true }
    }

    /// Releases it. If no link and no reference is left, the caller gets the inode, and
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

    /// Removes the link of a name that was removed. The reference stays, so the inode is not freed.
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
