//! `harris`: a sorted list without locks.
//!
//! # Idea
//!
//! A node is removed in two steps. First its own link is marked, in the lowest bit. From then on
//! the key is gone, and the link cannot change any more, so no node can be inserted behind it. Then
//! the predecessor's link is changed to skip the node. That is done by the thread that marked the
//! node, or by another that searches for its own position and finds marked nodes before. Each step
//! is one compare-and-swap. A look-up helps with no step: it reads past marked nodes.
//!
//! # Source
//!
//! T. Harris, "A pragmatic implementation of non-blocking linked-lists", DISC 2001: one
//! compare-and-swap unlinks a run of marked nodes. Look-ups that do not help are from M. Herlihy
//! and N. Shavit, "The art of multiprocessor programming". A thread that unlinks nodes retires them
//! to a [domain](crate::reclaim); the paper leaves freeing open.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire). The same holds for links in marked nodes: a mark is a read-modify-write, which
//! passes on what was released with the link. A thread that unlinks nodes passes on what is behind
//! them (Acquire, Release). An insertion takes effect with its compare-and-swap, and a removal with
//! its mark. A look-up that finds the key takes effect when it has seen the key's node without a
//! mark. A look-up that does not find the key takes effect at the last moment at which it read the
//! link of an unmarked node, if its last nodes were unmarked then. A marked node's link is as it
//! was when the node was marked. That was after the look-up began; otherwise the predecessor's link
//! would have skipped the node already.
//!
//! # Cost
//!
//! An update takes one compare-and-swap (a removal takes two) and a node. Threads that conflict at
//! one position retry from the front. Nodes are 8 bytes larger than their contents, and are managed
//! as in [`RcuList`](crate::collections::list::RcuList). A walk tests each link for a mark, and
//! clears the mark only if there is one. Clearing it always would put another operation between two
//! dependent loads, which cost a quarter of the throughput.
//!
//! # When not to use it
//!
//! Where a thread must see several keys as of one moment. Where values are replaced: this is a set,
//! without values.

use core::fmt;

use super::links::{Links, Node};
use crate::reclaim::{self, Config, Domain};
use crate::{ConcurrentSet, SetHandle};

/// A sorted list without locks.
pub struct HarrisList<K> {
    // Before the domain, in whose memory the nodes are.
    links: Links<K>,
    domain: Domain,
}

impl<K> HarrisList<K> {
    /// Creates one without keys; removed entries wait in a domain with this configuration.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { links: Links::new(), domain: Domain::of_nodes::<Node<K>>(config, 0) }
    }

    /// The domain in which removed nodes wait until no reader can use them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K> Default for HarrisList<K> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K> fmt::Debug for HarrisList<K> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HarrisList").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to a [`HarrisList`].
pub struct HarrisHandle<'a, K> {
    list: &'a HarrisList<K>,
    handle: reclaim::Handle<'a>,
}

impl<K> fmt::Debug for HarrisHandle<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("HarrisHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K: Ord + Send + Sync> ConcurrentSet<K> for HarrisList<K> {
    type Handle<'a>
        = HarrisHandle<'a, K>
    where
        Self: 'a;

    fn handle(&self) -> HarrisHandle<'_, K> {
        HarrisHandle { list: self, handle: self.domain.register() }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K: Ord + Send> SetHandle<K> for HarrisHandle<'_, K> {
    fn contains(&mut self, key: &K) -> bool {
        self.list.links.contains(key, &self.handle.pin())
    }

    fn insert(&mut self, key: K) -> bool {
        self.list.links.insert(key, &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> bool {
        self.list.links.remove(key, &self.handle.pin())
    }
}
