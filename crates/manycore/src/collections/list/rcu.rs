//! `rcu`: a sorted list that is read without a lock, and written under one.
//!
//! # Idea
//!
//! Readers walk; what they are on is not freed before they leave. A writer finds its place as
//! readers do, without the lock, and takes the lock only to look whether the place is still what it
//! was, and to change one link. If it is not, it walks once more, with the lock.
//!
//! A value is replaced by putting a new node in the place of the old one.
//!
//! # Source
//!
//! P. McKenney and J. Slingwine, "Read-copy update", PDCS 1998. That a writer walks without the
//! lock and then validates is from S. Heller, M. Herlihy, V. Luchangco, M. Moir, W. Scherer and N.
//! Shavit, "A lazy concurrent list-based set algorithm", OPODIS 2005. The mark in the link of what
//! is taken out is for writers here: readers go on past it, because one writer at a time leaves
//! such links as they were.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire); a mark is stored with Release, too, for a thread that follows the link of a node
//! that was taken out to one that another writer has put there. Writers are ordered by their lock.
//! The rest is the [domain](crate::reclaim)'s.
//!
//! Each operation takes effect at one instant. For each node that a thread visits there is a moment
//! since its call began at which the node could be reached: the moment when the thread read the
//! link to it; or, if the node before had been taken out by then, the moment of that removal,
//! because its link has not changed since except for its mark. So the link that the thread reads
//! next was there at such a moment, too.
//!
//! # Cost
//!
//! A reader's walk writes nothing but its record. An update costs the lock, a node, and a node that
//! is free later. A node is 8 bytes larger than what is in it, and lies with others of the list,
//! four to a line if keys are numbers: the memory is the list's, which uses it again, and gives it
//! back when it is dropped. Nodes of more than 256 bytes are the allocator's.
//!
//! # When not to use it
//!
//! Where most operations are updates: there is one lock. Where somebody must see several keys as
//! they were at one moment.

use crate::RawLock;
use crate::collections::rcu::{OneChain, RcuChains};
use crate::reclaim::{Config, Epoch};
use crate::sync::CachePadded;

/// A sorted list that is read without a lock. `F` is how readers [tell that they have
/// left](crate::reclaim::Mode).
///
/// The lock is on lines of its own: readers begin with the front of the list, which is seldom
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
