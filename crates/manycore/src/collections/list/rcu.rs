//! `rcu`: a sorted list that is read without a lock, and written under one.
//!
//! # Idea
//!
//! Readers walk; what they are on is not freed before they leave. A writer finds its place as readers do, without the lock,
//! and takes the lock only to look whether the place is still what it was, and to change one link. If it is not, it walks once
//! more, with the lock.
//!
//! A value is replaced by putting a new node in the place of the old one.
//!
//! # Source
//!
//! P. McKenney and J. Slingwine, "Read-copy update", PDCS 1998. That a writer walks without the lock and then validates is
//! from S. Heller, M. Herlihy, V. Luchangco, M. Moir, W. Scherer and N. Shavit, "A lazy concurrent list-based set
//! algorithm", OPODIS 2005; readers need no marks here, because one writer at a time leaves the links of what it takes out
//! as they were.
//!
//! # Memory order
//!
//! A node is complete before a link leads to it (Release), and who follows the link sees that (Acquire). Writers are ordered
//! by their lock. The rest is the [domain](crate::reclaim)'s.
//!
//! Each operation takes effect at one instant. Whoever stands on a node knows a moment since its call began at which the node
//! could be reached: when it read the link, or, if the node before had been taken out by then, when that was, because its
//! link has not changed since. So the link that it reads next was there at such a moment, too.
//!
//! # Cost
//!
//! A reader's walk writes nothing but its record. An update costs the lock, an allocation, and a node that is freed later.
//! A node is 16 bytes larger than what is in it.
//!
//! # When not to use it
//!
//! Where most operations are updates: there is one lock. Where somebody must see several keys as they were at one moment.

use core::fmt;

use super::chain::Chain;
use crate::reclaim::{self, Config, Domain};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, RawLock, SetHandle};

/// A sorted list that is read without a lock.
pub struct RcuList<K, V, L> {
    chain: Chain<K, V>,
    lock: L,
    domain: Domain,
}

impl<K, V, L: RawLock> RcuList<K, V, L> {
    /// Without keys; what is taken out waits in a domain like this.
    pub fn new(config: Config) -> Self {
        Self { chain: Chain::new(), lock: L::new(), domain: Domain::new(config) }
    }
}

impl<K, V, L> RcuList<K, V, L> {
    /// Where what was taken out waits until nobody can be on it.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K, V, L: RawLock> Default for RcuList<K, V, L> {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl<K, V, L> fmt::Debug for RcuList<K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuList").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to an [`RcuList`].
pub struct RcuListHandle<'a, K, V, L> {
    list: &'a RcuList<K, V, L>,
    handle: reclaim::Handle<'a>,
}

impl<K, V, L> fmt::Debug for RcuListHandle<'_, K, V, L> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuListHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K, V, L> ConcurrentMap<K, V> for RcuList<K, V, L>
where
    K: Ord + Send + Sync,
    V: Clone + Send + Sync,
    L: RawLock,
{
    type Handle<'a>
        = RcuListHandle<'a, K, V, L>
    where
        Self: 'a;

    fn handle(&self) -> RcuListHandle<'_, K, V, L> {
        RcuListHandle { list: self, handle: self.domain.register() }
    }
}

impl<K, V, L> MapHandle<K, V> for RcuListHandle<'_, K, V, L>
where
    K: Ord + Send,
    V: Clone + Send,
    L: RawLock,
{
    fn get(&mut self, key: &K) -> Option<V> {
        self.list.chain.read(key, &self.handle.pin(), V::clone)
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.list.chain.insert(&self.list.lock, key, value, &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        self.list.chain.remove(&self.list.lock, key, &self.handle.pin())
    }
}

impl<K: Ord + Send + Sync, L: RawLock> ConcurrentSet<K> for RcuList<K, (), L> {
    type Handle<'a>
        = RcuListHandle<'a, K, (), L>
    where
        Self: 'a;

    fn handle(&self) -> RcuListHandle<'_, K, (), L> {
        ConcurrentMap::handle(self)
    }
}

impl<K: Ord + Send, L: RawLock> SetHandle<K> for RcuListHandle<'_, K, (), L> {
    fn contains(&mut self, key: &K) -> bool {
        self.get(key).is_some()
    }

    fn insert(&mut self, key: K) -> bool {
        self.list.chain.insert_new(&self.list.lock, key, (), &self.handle.pin())
    }

    fn remove(&mut self, key: &K) -> bool {
        MapHandle::remove(self, key).is_some()
    }
}
