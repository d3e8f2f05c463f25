//! Marks in the lowest bit of links: of nodes that were taken out.

const MARK: usize = 1;

pub(super) fn marked<T>(link: *mut T) -> *mut T {
    link.map_addr(|address| address | MARK)
}

pub(super) fn is_marked<T>(link: *mut T) -> bool {
    link.addr() & MARK != 0
}

pub(super) fn unmarked<T>(link: *mut T) -> *mut T {
    link.map_addr(|address| address & !MARK)
}
