//! `rcu`: a sorted list that is read without a lock, and written under one.
//!
//! # Idea
//!
//! Readers walk; the nodes that they use are not freed before they leave. A writer finds its
//! position as readers do, without the lock. It takes the lock only to check that the position is
//! still valid, and to change one link. If the position is not valid, it walks once more, with the
//! lock.
//!
//! A value is replaced by replacing its node.
//!
//! # Source
//!
//! P. McKenney and J. Slingwine, "Read-copy update", PDCS 1998. Walking without the lock and
//! validating afterwards is from S. Heller, M. Herlihy, V. Luchangco, M. Moir, W. Scherer and N.
//! Shavit, "A lazy concurrent list-based set algorithm", OPODIS 2005. Here only writers need the
//! mark in the link of a removed node. Readers follow marked links, because the single writer does
//! not change such links any more.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire). A mark is stored with Release, too, for a thread that follows a removed node's
//! link to a node that another writer has inserted. Writers are ordered by their lock. The
//! [domain](crate::reclaim) orders everything else.
//!
//! Each operation takes effect at one instant. For each node that a thread visits, there is a
//! moment since its call began at which the node could be reached. It is the moment when the thread
//! read the link to the node. Or, if the node before had been removed by then, it is the moment of
//! that removal, because the link of that node has not changed since except for its mark. So the
//! link that the thread reads next was valid at such a moment, too.
//!
//! # Cost
//!
//! A reader's walk writes only its record. An update costs the lock, a node, and a node that is
//! freed later. A node is 8 bytes larger than its contents. Nodes of a list are next to each other,
//! four to a line if keys are numbers. Their memory belongs to the list, which reuses it, and frees
//! it when the list is dropped. Nodes of more than 256 bytes come from the allocator.
//!
//! # When not to use it
//!
//! Where most operations are updates: there is one lock. Where a thread must see several keys as of
//! one moment.

use crate::RawLock;
use crate::collections::rcu::{OneChain, RcuChains};
use crate::reclaim::{Config, Epoch};
use crate::sync::CachePadded;

/// A sorted list that is read without a lock. `F` is how readers [report that they have
/// left](crate::reclaim::Mode).
///
/// The lock is on lines of its own: readers begin with the front of the list, which is rarely
/// written.
pub type RcuList<K, V, L, F = Epoch> = RcuChains<K, V, CachePadded<L>, OneChain, F>;

impl<K, V, L: RawLock, F> RcuList<K, V, L, F> {
    /// Creates one without keys; removed entries wait in a domain with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::with_chains(1, 0, config)
    }
}

impl<K, V, L: RawLock, F> Default for RcuList<K, V, L, F> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}
