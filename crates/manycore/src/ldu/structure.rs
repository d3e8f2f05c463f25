//! The operations of a structure that a log can update, and its items.

use core::ptr::NonNull;

use super::queue::node::Node;

/// What can be updated by a log.
///
/// Updates of different items come in any order, so the structure's final state must not depend on
/// the order. If an order matters, such as that of otherwise equal items, it has to be part of the
/// items. Updates of one item alternate between the two, beginning with [`insert`](Self::insert).
pub trait Structure<T> {
    /// The item comes in.
    fn insert(&mut self, item: Item<'_, T>);

    /// The item leaves.
    fn remove(&mut self, item: Item<'_, T>);
}

/// An item that will be inserted into the structure, or removed from it.
///
/// A structure may keep its [address](Self::pointer): from its insertion until its removal the item
/// does not move, and no thread has it mutably.
#[derive(Debug)]
pub struct Item<'a, T>(pub(super) &'a T);

impl<T> Item<'_, T> {
    /// Where the item is, until it is removed.
    #[must_use]
    pub fn pointer(&self) -> NonNull<T> {
        NonNull::from(self.0)
    }
}

impl<T> core::ops::Deref for Item<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

/// An item with its part of the log, which comes first, so that one address is that of both.
#[repr(C)]
pub(super) struct Object<T> {
    pub(super) node: Node,
    pub(super) value: T,
}

impl<T> Object<T> {
    /// The object whose node it is.
    pub(super) fn of(node: NonNull<Node>) -> NonNull<Self> {
        node.cast()
    }
}
