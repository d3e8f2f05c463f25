//! On which node the memory of a page is.

use crate::arena::{LINE, PAGE};

/// Which node a page goes to when it is first touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// To that of the CPU that touches it.
    FirstTouch,
    /// To the nodes in turn, page by page.
    Interleave,
    /// To this node.
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
