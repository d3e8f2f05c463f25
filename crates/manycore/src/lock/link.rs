//! A pointer to a node of a queue, which also tells in which process it was written.
//!
//! The child of a fork has one thread. The nodes of a queue in its memory belong to threads that it
//! does not have; and where nodes were on stacks, the memory is reused for new threads. So each
//! pointer contains, in the bits that alignment leaves free, the [`process::generation`] in which
//! it was written. A pointer to a node of another process is never followed.

use core::marker::PhantomData;

use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{const_new, mortal, process};

/// Nodes have at least this alignment, so that this many generations can be told apart. A lock
/// would be mistaken if it was contended at a fork, and is not used again before its process and
/// descendants have forked this often.
const ALIGNMENT: usize = 64;

/// What a link points to.
#[derive(Clone, Copy)]
pub(super) enum Linked<T> {
    Nothing,
    Node(*mut T),
    /// A node of another process.
    Ghost,
}

/// A link of a queue. If all bytes are zero, it points to nothing.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct Link<T> {
    pointer: AtomicPtr<T>,
    node: PhantomData<fn() -> T>,
}

impl<T> Link<T> {
    const_new! {
        pub(super) fn new() -> Self {
            const { assert!(align_of::<T>() >= ALIGNMENT) };
            Self { pointer: AtomicPtr::new(core::ptr::null_mut()), node: PhantomData }
        }
    }

    #[inline]
    pub(super) fn load(&self, order: Ordering) -> Linked<T> {
        linked(self.pointer.load(order))
    }

    /// Whether it points to nothing, as a hint.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.pointer.load(Ordering::Relaxed).is_null() // Relaxed: not followed
    }

    /// Makes it point to a node, or to nothing.
    #[inline]
    pub(super) fn store(&self, node: *mut T, order: Ordering) {
        self.pointer.store(null_or_written_now(node), order);
    }

    #[inline]
    pub(super) fn swap(&self, node: *mut T, order: Ordering) -> Linked<T> {
        linked(self.pointer.swap(written_now(node), order))
    }

    /// Makes a null link point to a node; returns whether it did.
    #[inline]
    pub(super) fn fill(&self, node: *mut T, order: Ordering) -> bool {
        self.replace(core::ptr::null_mut(), written_now(node), order)
    }

    /// If the link points to this node since that generation, makes it null; returns whether it
    /// did.
    #[inline]
    pub(super) fn clear(&self, node: *mut T, generation: u32, order: Ordering) -> bool {
        self.pass(node, generation, core::ptr::null_mut(), order)
    }

    /// If the link points to this node since that generation, replaces it by a link to another node
    /// or by null; returns whether it did.
    #[inline]
    pub(super) fn pass(&self, node: *mut T, generation: u32, to: *mut T, order: Ordering) -> bool {
        self.replace(written_in(node, generation), null_or_written_now(to), order)
    }

    /// If the link points to a ghost, makes it null; returns whether it did.
    #[cold]
    pub(super) fn clear_ghost(&self, order: Ordering) -> bool {
        let pointer = self.pointer.load(Ordering::Relaxed); // Relaxed: the exchange decides
        matches!(linked(pointer), Linked::Ghost)
            && self.replace(pointer, core::ptr::null_mut(), order)
    }

    #[inline]
    fn replace(&self, from: *mut T, to: *mut T, order: Ordering) -> bool {
        // Relaxed on failure: nothing was acquired or released.
        self.pointer.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }
}

#[inline]
fn written_now<T>(node: *mut T) -> *mut T {
    written_in(node, process::generation())
}

#[inline]
fn null_or_written_now<T>(node: *mut T) -> *mut T {
    if node.is_null() { node } else { written_now(node) }
}

#[inline]
fn written_in<T>(node: *mut T, generation: u32) -> *mut T {
    node.map_addr(|address| address | (generation as usize % ALIGNMENT))
}

#[inline]
fn linked<T>(pointer: *mut T) -> Linked<T> {
    let node = pointer.map_addr(|address| address & !(ALIGNMENT - 1));
    if node.is_null() {
        Linked::Nothing
    } else if written_now(node) == pointer {
        Linked::Node(node)
    } else {
        Linked::Ghost
    }
}

mortal!(Link<T> { pointer });
