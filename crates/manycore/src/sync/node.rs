//! Nodes for queue locks: taken from the back end, and lent for an attempt.

use core::ptr::NonNull;

pub use super::backend::node::*;

/// Takes a node and runs `enter`, which returns whether it has put the node into a queue; if not,
/// returns the node to the store. Returns `enter`'s result.
///
/// # Safety
///
/// If `enter` says no, no other thread has the node.
#[inline]
pub unsafe fn lend<T: Default>(enter: impl FnOnce(NonNull<T>) -> bool) -> bool {
    let node = take();
    let entered = enter(node);
    if !entered {
        // SAFETY: `take` has made the node. If `enter` returns false, no other thread has it
        // (contract of this function).
        unsafe { give_back(node) };
    }
    entered
}
