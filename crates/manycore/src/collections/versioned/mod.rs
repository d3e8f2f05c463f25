//! Chains over any mechanism with sessions: what the list and the hash table over MV-RLU and RLU have in common.

mod chain;
mod handle;

pub use handle::{Handle, Reads, Writes};

use alloc::boxed::Box;
use core::hash::Hash;
use core::marker::PhantomData;

use chain::{Node, Root};

use super::hash::bucket_of;
use crate::session::{RawSession, Sessions, View};

/// In which chain a key is.
pub trait Placement<K> {
    /// The number of the chain, of so many.
    fn place(key: &K, chains: usize) -> usize;
}

/// All keys in one chain, which then is in their order.
#[derive(Debug)]
pub struct One;

impl<K> Placement<K> for One {
    #[inline]
    fn place(_key: &K, _chains: usize) -> usize {
        0
    }
}

/// Keys are spread over the chains.
#[derive(Debug)]
pub struct Hashed;

impl<K: Hash> Placement<K> for Hashed {
    #[inline]
    fn place(key: &K, chains: usize) -> usize {
        bucket_of(key, chains)
    }
}

/// Sorted chains of entries in a domain of their own.
///
/// Keys and values are copied from version to version. Operations on one key are linearizable; snapshots and transactions see all
/// chains at one moment.
pub struct Chains<K: Copy, V: Copy, M: Sessions, P> {
    domain: M,
    roots: Box<[Root<K, V>]>,
    placement: PhantomData<fn() -> P>,
}

impl<K: Copy, V: Copy, M: Sessions, P> Chains<K, V, M, P> {
    /// So many chains without entries, in a domain that has nothing else.
    pub(super) fn with_chains(domain: M, chains: usize) -> Self {
        assert!(chains > 0, "a hash table has one bucket at least");
        let mut handle = domain.register();
        let roots = (0..chains)
            .map(|_| {
                // SAFETY: a session, from begin to end.
                unsafe {
                    handle.begin(View::Latest);
                    let root = handle.alloc(Node::first());
                    handle.commit();
                    root
                }
            })
            .collect();
        drop(handle);
        Self { domain, roots, placement: PhantomData }
    }

    /// The domain, for its statistics and limits.
    pub fn domain(&self) -> &M {
        &self.domain
    }
}

impl<K: Copy, V: Copy, M: Sessions, P> core::fmt::Debug for Chains<K, V, M, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Chains").field("chains", &self.roots.len()).finish_non_exhaustive()
    }
}
