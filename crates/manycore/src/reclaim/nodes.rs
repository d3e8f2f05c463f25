//! The nodes of a structure, in memory that its domain keeps for them.
//!
//! A list's reader goes from node to node, and its speed depends on the number of cache lines of
//! the nodes. In the allocator's memory each node has at least 8 additional bytes, and lies between
//! other data. So a domain of a structure has [chunks](crate::object_pool) full of nodes. The
//! memory of a destroyed node is reused for the next new one.
//!
//! Nodes are boxes in the model checker and the simulator, which are to see each node come and go,
//! and notice one that is lost. Large nodes are boxes, too: they would gain nothing in chunks.

use core::mem::needs_drop;
use core::ptr::drop_in_place;

use crate::object_pool::{BumpTail, Chunks, Free, GlobalFreeList, List};

/// The largest node that is not a box, in bytes.
pub(super) const LARGEST: usize = 256;

/// Whether nodes of this type are in a domain's memory, and not in boxes.
pub(super) const fn are_kept<T>() -> bool {
    // Nodes in a chunk start at a line's begin, a multiple of the type's alignment apart.
    !cfg!(any(loom, feature = "sim")) && size_of::<T>() <= LARGEST && align_of::<T>() <= 16
}

/// A domain's data for nodes of one type, or of none.
pub(super) struct Nodes {
    /// What one takes; 0 if there are none.
    pub bytes: usize,
    /// Drops the contents of a node; none if nothing has to be dropped.
    end: Option<unsafe fn(*mut ())>,
    pub batches: GlobalFreeList,
    chunks: Chunks,
}

/// What a thread has for them.
pub(super) struct Pool {
    pub list: List,
    rest: BumpTail,
}

impl Nodes {
    pub fn none() -> Self {
        Self { bytes: 0, end: None, batches: GlobalFreeList::new(), chunks: Chunks::new() }
    }

    /// Each takes this many bytes at least.
    pub fn of<T>(bytes_min: usize) -> Self {
        /// # Safety
        ///
        /// It is a node of this type, and no thread can use it any more.
        unsafe fn end<T>(node: *mut ()) {
            // SAFETY: it is a node of this type, and no thread has it any more (contract of this
            // function).
            unsafe { drop_in_place(node.cast::<T>()) };
        }
        if !are_kept::<T>() {
            return Self::none();
        }
        let bytes = size_of::<T>().max(size_of::<Free>()).max(bytes_min);
        let bytes = bytes.next_multiple_of(align_of::<T>().max(align_of::<Free>()));
        Self { bytes, end: needs_drop::<T>().then_some(end::<T>), ..Self::none() }
    }

    pub fn memory_bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// Ends what is in a node.
    ///
    /// # Safety
    ///
    /// The node is one of these, and no thread can use it any more.
    pub unsafe fn end(&self, node: *mut ()) {
        if let Some(end) = self.end {
            // SAFETY: `end` was made for the type of this domain's nodes. This is one of them, and
            // no thread has it any more (contract of this function).
            unsafe { end(node) };
        }
    }
}

impl Pool {
    pub fn new() -> Self {
        Self { list: List::EMPTY, rest: BumpTail::NONE }
    }

    /// Memory for a node.
    #[inline]
    pub fn take(&mut self, nodes: &Nodes) -> *mut u8 {
        let Self { list, rest } = self;
        list.take().unwrap_or_else(|| list.refill(nodes.bytes, &nodes.batches, rest, &nodes.chunks))
    }
}
