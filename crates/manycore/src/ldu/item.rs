//! The owner of an item, and the item's state.

use alloc::boxed::Box;
use core::mem::{ManuallyDrop, forget};
use core::ops::Deref;
use core::ptr::NonNull;

use super::deferred::Deferred;
use super::queue::node::{Node, Operation};
use super::queue::{Global, Queue};
use super::structure::{Object, Structure};
use crate::RawLock;
use crate::lock::Adaptive;

/// An item that is not in its structure, in its owner's view. After it is dropped, its memory is
/// freed when its entries are next taken from the log. That happens immediately if the core's log
/// is [long](super::MANY) and the structure's lock is free.
///
/// Then the thread that drops the item applies the core's log. That thread must be allowed to call
/// the [`Structure`], and receives its panics.
#[must_use = "what is dropped does not come into the structure"]
pub struct Absent<'d, S: Structure<T>, T, Q: Queue = Global, L: RawLock = Adaptive> {
    deferred: &'d Deferred<S, T, Q, L>,
    object: NonNull<Object<T>>,
}

/// An item that is in its structure, in its owner's view. When it is dropped, it is removed, and
/// then dropped like an [`Absent`]. If the removal is applied [inline](Deferred::eager_below), its
/// memory is freed immediately.
#[must_use = "what is dropped is removed again: `keep` it if it should stay"]
pub struct Present<'d, S: Structure<T>, T, Q: Queue = Global, L: RawLock = Adaptive>(
    ManuallyDrop<Absent<'d, S, T, Q, L>>,
);

// SAFETY: it consists of a reference to a `Deferred` that may be sent, and the right to change the
// item's state, which moves with it: one thread at a time is the owner. `T: Send + Sync`, since
// another thread may read the item and drop it.
unsafe impl<S, T, Q, L> Send for Absent<'_, S, T, Q, L>
where
    S: Structure<T>,
    T: Send + Sync,
    Q: Queue,
    L: RawLock,
    for<'a> &'a Deferred<S, T, Q, L>: Send,
{
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Deferred<S, T, Q, L> {
    /// A new item, which is not in the structure.
    pub fn item(&self, value: T) -> Absent<'_, S, T, Q, L> {
        Absent::new(self, value)
    }
}

impl<'d, S: Structure<T>, T, Q: Queue, L: RawLock> Absent<'d, S, T, Q, L> {
    fn new(deferred: &'d Deferred<S, T, Q, L>, value: T) -> Self {
        let object = Box::new(Object { node: Node::new(), value });
        // The address is that of the whole object, even where only the node is known.
        Self { deferred, object: NonNull::from(Box::leak(object)) }
    }

    fn update(&self, operation: Operation) {
        let node = self.object.cast();
        // SAFETY: only the owner has one of the two, `Absent` or `Present`, and exchanges it for
        // the other by this: so operations alternate. The object is there until its owner has
        // retired it, or freed it.
        unsafe {
            if !self.deferred.apply(operation, node) {
                Node::log(node, operation, self.deferred.queue());
            }
        }
    }

    /// The item comes into the structure.
    ///
    /// # Panics
    ///
    /// If it is applied [at once](Deferred::eager_below), and the structure does: the item is
    /// dropped then.
    #[inline]
    pub fn insert(self) -> Present<'d, S, T, Q, L> {
        self.update(Operation::Insert);
        Present(ManuallyDrop::new(self))
    }

    /// Changes the item, after the whole log has been applied: then only its owner can reach it.
    ///
    /// An insertion and a removal that are both in the log cancel. That is right only if the item
    /// is the same in both, so an item cannot be changed while it may be in the log.
    pub fn edit<R>(&mut self, edit: impl FnOnce(&mut T) -> R) -> R {
        self.deferred.synchronize();
        // SAFETY: the owner is absent, and `synchronize` has applied all that it has logged. So
        // neither the structure nor the log has the item, and only its owner, which is here, could
        // insert it again.
        edit(unsafe { &mut self.object.as_mut().value })
    }

    /// The item itself, after all that is logged has been applied.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.deferred.synchronize();
        let object = self.object;
        forget(self);
        // SAFETY: the owner is absent, and `synchronize` has applied all that it has logged: so
        // nothing else has the object. `new` has made it by a box, and `forget` keeps it from being
        // retired.
        let object = unsafe { Box::from_raw(object.as_ptr()) };
        object.value
    }
}

impl<'d, S: Structure<T>, T, Q: Queue, L: RawLock> Present<'d, S, T, Q, L> {
    /// Removes the item from the structure. A read that is under way may still see it.
    ///
    /// # Panics
    ///
    /// If it is applied [at once](Deferred::eager_below), and the structure does: the item's memory
    /// is lost then.
    #[inline]
    pub fn remove(self) -> Absent<'d, S, T, Q, L> {
        // Not dropped, that is removed once more, if the structure panics.
        let mut this = ManuallyDrop::new(self);
        this.0.update(Operation::Remove);
        // SAFETY: `this` is a `ManuallyDrop` that is not used again, so that its content is taken
        // once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Leaves the item in the structure permanently: until the structure is dropped. Its memory is
    /// never freed.
    pub fn keep(self) {
        forget(self);
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Drop for Absent<'_, S, T, Q, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the owner is absent, so that the last operation was no insertion, and does not
        // use the node again after this.
        unsafe { Node::retire(self.object.cast(), self.deferred.queue()) };
        self.deferred.sweep();
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Drop for Present<'_, S, T, Q, L> {
    #[inline]
    fn drop(&mut self) {
        let Absent { deferred, object } = *self.0;
        let node = object.cast();
        // SAFETY: the owner is present, so the last operation was an insertion, and does not use
        // the node again after this. `Absent::new` has made the object by a box. It is freed here
        // only if it was removed from the structure, with the lock held, and no entry is left by
        // which another thread could reach it.
        unsafe {
            if !deferred.apply(Operation::Remove, node) {
                Node::remove_and_retire(node, deferred.queue());
                deferred.sweep();
            } else if node.as_ref().is_known() {
                Node::retire(node, deferred.queue());
            } else {
                drop(Box::from_raw(object.as_ptr()));
            }
        }
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Deref for Absent<'_, S, T, Q, L> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the object is there until its owner, which this is, retires it; the value is
        // changed by `edit` only, which borrows the owner mutably.
        unsafe { &self.object.as_ref().value }
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Deref for Present<'_, S, T, Q, L> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<S: Structure<T>, T: core::fmt::Debug, Q: Queue, L: RawLock> core::fmt::Debug
    for Absent<'_, S, T, Q, L>
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Absent").field(&**self).finish()
    }
}

impl<S: Structure<T>, T: core::fmt::Debug, Q: Queue, L: RawLock> core::fmt::Debug
    for Present<'_, S, T, Q, L>
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Present").field(&**self).finish()
    }
}
