//! `harris`: a sorted list without locks.
//!
//! # Idea
//!
//! A node is taken out in two steps. First its own link is marked, in the lowest bit: from then on
//! the key is gone, and the link cannot change any more, so that nothing is put in behind a node
//! that is about to go. Then the link before it is led past it, by the thread that gets there
//! first: the one who has marked it, or any other who looks for its place and finds marked nodes in
//! the way. Each step is one compare-and-swap. A look-up takes no step of others: it walks over
//! marked nodes.
//!
//! # Source
//!
//! T. Harris, "A pragmatic implementation of non-blocking linked-lists", DISC 2001: a row of marked
//! nodes is taken out with one compare-and-swap. That look-ups do not help is from M. Herlihy and
//! N. Shavit, "The art of multiprocessor programming". A thread that leads the link past nodes
//! retires them, to be freed by a [domain](crate::reclaim); the paper leaves freeing open.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and a thread that follows the link sees
//! that (Acquire); that goes for links in marked nodes, too: a mark is a read-modify-write, which
//! passes on what was released with the link. A thread that leads a link past nodes passes on what
//! is behind them (Acquire, Release). Insertion takes effect with its compare-and-swap, a removal
//! with its mark, a look-up that finds the key when it has seen the key's node without a mark. One
//! that does not find it: if it stands on nodes that were not marked when it read their links, then
//! at the last such moment; a marked node's link is as it was when it was marked, which is after
//! the look-up began, or else the link before led past it already.
//!
//! # Cost
//!
//! An update is one compare-and-swap, two to remove, and a node; those who meet at one place try
//! again from the front. Nodes are 8 bytes larger than what is in them, in memory as that of
//! [`RcuList`](crate::collections::list::RcuList). A walk asks each link whether it has a mark, and
//! takes it off only then: to do so always would be one more operation between two loads, of which
//! the second waits for the first, and took a quarter of the throughput.
//!
//! # When not to use it
//!
//! Where a thread must see several keys as they were at one moment. Where values are replaced: this
//! is a set, without values.

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

    /// Where what was taken out waits until nobody can be on it.
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
