//! Sorted chains that are read without a lock: the common part of the list and the hash table over
//! RCU.

mod chain;

use alloc::boxed::Box;
use core::fmt;
use core::hash::Hash;
use core::marker::PhantomData;

use self::chain::{Chain, Node};
use super::hashing::bucket_of;
use crate::reclaim::{Config, Domain, Epoch, Mode};
use crate::{ConcurrentMap, ConcurrentSet, MapHandle, RawLock, SetHandle};

/// How keys are divided among chains.
pub trait Partition<K> {
    /// The number of a key's chain, below `chains`.
    fn place(key: &K, chains: usize) -> usize;
}

/// All keys are in one chain.
#[derive(Debug)]
pub struct OneChain;

impl<K> Partition<K> for OneChain {
    #[inline]
    fn place(_key: &K, _chains: usize) -> usize {
        0
    }
}

/// A key's chain follows from its hash.
#[derive(Debug)]
pub struct ByHash;

impl<K: Hash> Partition<K> for ByHash {
    #[inline]
    fn place(key: &K, chains: usize) -> usize {
        bucket_of(key, chains)
    }
}

/// Chains in one domain, each with a lock for writers. `P` chooses the chain of a key, and `F` when
/// a thread reports that its readers have left.
pub struct RcuChains<K, V, L, P, F = Epoch> {
    // Before the domain, in whose memory the nodes are.
    chains: Box<[Locked<K, V, L>]>,
    domain: Domain,
    _choices: PhantomData<fn() -> (P, F)>,
}

/// Aligned to a line; its lock takes at most 24 bytes.
#[repr(align(32))]
struct Locked<K, V, L> {
    chain: Chain<K, V>,
    lock: L,
}

impl<K, V, L: RawLock, P, F> RcuChains<K, V, L, P, F> {
    /// Makes `chains` empty chains, whose nodes take at least this many bytes. Removed nodes wait
    /// in a domain with this configuration.
    pub(super) fn with_chains(chains: usize, node_bytes_min: usize, config: Config) -> Self {
        let chain = |_| Locked { chain: Chain::new(), lock: L::new() };
        Self {
            chains: (0..chains).map(chain).collect(),
            domain: Domain::of_nodes::<Node<K, V>>(config, node_bytes_min),
            _choices: PhantomData,
        }
    }
}

impl<K, V, L, P, F> RcuChains<K, V, L, P, F> {
    /// The domain in which removed nodes wait until no reader can use them.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<K, V, L, P, F> fmt::Debug for RcuChains<K, V, L, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuChains").field("domain", &self.domain).finish_non_exhaustive()
    }
}

/// A thread's access to [`RcuChains`].
pub struct RcuHandle<'a, K, V, L, P, F: Mode> {
    /// A direct field, not behind the reference to [`RcuChains`], because each operation begins
    /// with it.
    chains: &'a [Locked<K, V, L>],
    handle: F::Handle<'a>,
    _choice: PhantomData<fn() -> P>,
}

impl<'a, K, V, L, P: Partition<K>, F: Mode> RcuHandle<'a, K, V, L, P, F> {
    /// The chain of a key.
    #[inline]
    fn of(&self, key: &K) -> &'a Locked<K, V, L> {
        &self.chains[P::place(key, self.chains.len())]
    }
}

impl<K, V, L, P, F: Mode> fmt::Debug for RcuHandle<'_, K, V, L, P, F> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("RcuHandle").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl<K, V, L, P, F> ConcurrentMap<K, V> for RcuChains<K, V, L, P, F>
where
    K: Ord + Send + Sync,
    V: Clone + Send + Sync,
    L: RawLock,
    P: Partition<K>,
    F: Mode,
{
    type Handle<'a>
        = RcuHandle<'a, K, V, L, P, F>
    where
        Self: 'a;

    fn handle(&self) -> RcuHandle<'_, K, V, L, P, F> {
        RcuHandle { chains: &self.chains, handle: F::register(&self.domain), _choice: PhantomData }
    }
}

impl<K, V, L, P, F> MapHandle<K, V> for RcuHandle<'_, K, V, L, P, F>
where
    K: Ord + Send,
    V: Clone + Send,
    L: RawLock,
    P: Partition<K>,
    F: Mode,
{
    #[inline]
    fn get(&mut self, key: &K) -> Option<V> {
        let Locked { chain, .. } = self.of(key);
        F::section(&mut self.handle, |guard| chain.read(key, guard, V::clone))
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Locked { chain, lock } = self.of(&key);
        F::section(&mut self.handle, |guard| chain.insert(lock, key, value, guard))
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        let Locked { chain, lock } = self.of(key);
        F::section(&mut self.handle, |guard| chain.remove(lock, key, guard))
    }
}

impl<K, L, P, F> ConcurrentSet<K> for RcuChains<K, (), L, P, F>
where
    K: Ord + Send + Sync,
    L: RawLock,
    P: Partition<K>,
    F: Mode,
{
    type Handle<'a>
        = RcuHandle<'a, K, (), L, P, F>
    where
        Self: 'a;

    fn handle(&self) -> RcuHandle<'_, K, (), L, P, F> {
        ConcurrentMap::handle(self)
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.domain.statistics(visit);
    }
}

impl<K, L, P, F> SetHandle<K> for RcuHandle<'_, K, (), L, P, F>
where
    K: Ord + Send,
    L: RawLock,
    P: Partition<K>,
    F: Mode,
{
    #[inline]
    fn contains(&mut self, key: &K) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    fn insert(&mut self, key: K) -> bool {
        let Locked { chain, lock } = self.of(&key);
        F::section(&mut self.handle, |guard| chain.insert_new(lock, key, (), guard))
    }

    #[inline]
    fn remove(&mut self, key: &K) -> bool {
        MapHandle::remove(self, key).is_some()
    }
}
