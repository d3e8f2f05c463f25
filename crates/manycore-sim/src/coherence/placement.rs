//! The node that has the memory of a page.

use crate::arena::{LINE, PAGE};

/// The node to which a page goes when it is first touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The node of the CPU that touches it.
    FirstTouch,
    /// The nodes in turn, page by page.
    Interleave,
    /// This node.
    Bind(u32),
}

impl MemoryPolicy {
    pub(super) fn node(self, line: u32, toucher: u32, nodes: u32) -> u32 {
        match self {
            Self::FirstTouch => toucher,
            Self::Interleave => line / (PAGE / LINE) as u32 % nodes,
            Self::Bind(node) => node.min(nodes - 1),
        }
    }
}
