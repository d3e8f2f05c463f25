//! Marks in the lowest bit of links: a mark in a node's link says that the node was removed.

const MARK: usize = 1;

pub(in crate::collections) fn marked<T>(link: *mut T) -> *mut T {
    link.map_addr(|address| address | MARK)
}

pub(in crate::collections) fn is_marked<T>(link: *mut T) -> bool {
    link.addr() & MARK != 0
}

pub(in crate::collections) fn unmarked<T>(link: *mut T) -> *mut T {
    link.map_addr(|address| address & !MARK)
}

/// Does the same as [`unmarked`], for links that readers follow. Readers are seldom at a removed
/// node, so this is a branch, which is predicted well, rather than one more operation between two
/// loads.
#[inline]
pub(in crate::collections) fn followed<T>(link: *mut T) -> *mut T {
    if is_marked(link) { of_a_removed_node(link) } else { link }
}

#[cold]
#[inline(never)]
fn of_a_removed_node<T>(link: *mut T) -> *mut T {
    unmarked(link)
}
