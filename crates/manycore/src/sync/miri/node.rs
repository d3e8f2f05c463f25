//! Nodes for queue locks: an allocation each, so that the interpreter notices uses after a node was
//! given back.

use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use core::ptr::NonNull;

const LAYOUT: Layout = match Layout::from_size_align(128, 128) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// A node in its initial state. It is the caller's until [`give_back`].
pub fn take<T: Default>() -> NonNull<T> {
    const { assert!(size_of::<T>() <= LAYOUT.size() && align_of::<T>() <= LAYOUT.align()) };
    // SAFETY: the layout is not of size 0.
    let node = NonNull::new(unsafe { alloc(LAYOUT) }).unwrap_or_else(|| handle_alloc_error(LAYOUT));
    let node = node.cast::<T>();
    // SAFETY: the memory is new, and the assertion says that it is large and aligned enough for a
    // `T`.
    unsafe { node.write(T::default()) };
    node
}

/// Gives a node back, from any thread.
///
/// # Safety
///
/// It came from [`take`], and no thread will touch it.
pub unsafe fn give_back<T>(node: NonNull<T>) {
    // SAFETY: `take` has allocated it with this layout, and no thread touches it any more (contract
    // of this function).
    unsafe { dealloc(node.as_ptr().cast(), LAYOUT) };
}
