//! `ascylib-lazy`: chains in the form of the lazy list, and a lock for each bucket.
//!
//! Source: S. Heller and others, "A Lazy Concurrent List-Based Set Algorithm", OPODIS 2005; the
//! form with a lock for each bucket is `lb-ht_lazy_gl` of ASCYLIB.

use manycore_simulated::lock::{PlainLock, Tas};
use manycore_simulated::sync::atomic::Ordering;
use manycore_simulated::sync::hint;
use manycore_traits::{ConcurrentSet, SetHandle};

use super::nodes::{Node, Pool, Pools};

/// A hash table.
pub(super) struct LazyTable {
    /// In the published table, a bucket has two addresses: that of a node without a key, and that
    /// of its lock. A thread here reads both as well, although the bucket's number is enough to
    /// find them.
    buckets: Box<[[usize; 2]]>,
    /// The nodes without keys, two to a cache line.
    firsts: Box<[Node]>,
    /// The buckets' locks, sixteen to a cache line.
    locks: Box<[Tas]>,
    pools: Pools,
}

impl LazyTable {
    pub const NAME: &'static str = "ascylib-lazy";

    /// Creates a table for this many threads.
    pub fn new(threads: u32, buckets: u64) -> Self {
        Self::with_pools(Pools::new(threads), buckets)
    }

    pub fn with_pools(pools: Pools, buckets: u64) -> Self {
        Self {
            buckets: (0..buckets).map(|_| [0; 2]).collect(),
            firsts: (0..buckets).map(|_| Node::new(0)).collect(),
            locks: (0..buckets).map(|_| Tas::new()).collect(),
            pools,
        }
    }

    fn bucket(&self, key: u64) -> usize {
        (key % self.buckets.len() as u64) as usize
    }

    fn first(&self, key: u64) -> &Node {
        let bucket = self.bucket(key);
        hint::touch(&raw const self.buckets[bucket][0]);
        &self.firsts[bucket]
    }

    fn lock(&self, key: u64) -> &Tas {
        let bucket = self.bucket(key);
        hint::touch(&raw const self.buckets[bucket][1]);
        &self.locks[bucket]
    }
}

impl ConcurrentSet<u64> for LazyTable {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        Handle { table: self, pool: self.pools.pool() }
    }
}

/// A thread's handle.
pub(super) struct Handle<'a> {
    table: &'a LazyTable,
    pool: Pool<'a>,
}

/// The last node before a key, and the one behind that.
struct Window<'a> {
    before: &'a Node,
    node: *mut Node,
}

impl Window<'_> {
    /// The node, if it has the key.
    fn with(&self, key: u64) -> Option<&Node> {
        // SAFETY: a node's memory stays, and the pools do not reuse it while a thread can read it.
        let node = unsafe { self.node.as_ref() };
        node.filter(|node| node.key() == key)
    }

    /// Whether both nodes are still in the chain and adjacent. Call it with the lock held.
    fn is_valid(&self) -> bool {
        // Relaxed: a thread that has changed them had the lock.
        let is_marked = |node: &Node| node.is_marked.load(Ordering::Relaxed);
        // SAFETY: a node's memory stays, and the pools do not reuse it while a thread can read it.
        let node = unsafe { self.node.as_ref() };
        !is_marked(self.before) && !node.is_some_and(is_marked) && self.before.next() == self.node
    }
}

impl<'a> Handle<'a> {
    /// The nodes between which a key is or would be.
    fn find(&self, key: u64) -> Window<'a> {
        let mut before: &'a Node = self.table.first(key);
        loop {
            let node = before.next();
            hint::unforeseen_branch();
            // SAFETY: a node's memory stays. The pools do not reuse it while this thread can read
            // it: the thread has made no step since it began.
            match unsafe { node.as_ref() } {
                Some(next) if next.key() < key => before = next,
                _ => return Window { before, node },
            }
        }
    }

    /// Runs `change` with the lock of a key's bucket held.
    fn locked<R>(&mut self, key: u64, change: impl FnOnce(&mut Pool<'a>) -> R) -> R {
        let lock = self.table.lock(key);
        lock.acquire();
        let result = change(&mut self.pool);
        // SAFETY: this thread holds the lock, and releases it once.
        unsafe { lock.release() };
        result
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        let window = self.find(*key);
        // Acquire: partner of the Release of the mark.
        window.with(*key).is_some_and(|node| !node.is_marked.load(Ordering::Acquire))
    }

    fn insert(&mut self, key: u64) -> bool {
        loop {
            let window = self.find(key);
            if let Some(node) = window.with(key) {
                // Acquire: partner of the Release of the mark.
                if node.is_marked.load(Ordering::Acquire) {
                    // Another thread is removing it.
                    hint::spin_loop();
                    continue;
                }
                return false;
            }
            let is_done = self.locked(key, |pool| {
                window.is_valid().then(|| {
                    let node = pool.allocate(key, window.node);
                    // Release: a thread that follows the link sees what the node has.
                    window.before.next.store(node, Ordering::Release);
                })
            });
            if is_done.is_some() {
                return true;
            }
        }
    }

    fn remove(&mut self, key: &u64) -> bool {
        loop {
            let window = self.find(*key);
            let Some(node) = window.with(*key) else {
                return false;
            };
            let is_done = self.locked(*key, |pool| {
                window.is_valid().then(|| {
                    // Release: a thread that sees the mark sees what was done before.
                    node.is_marked.store(true, Ordering::Release);
                    window.before.next.store(node.next(), Ordering::Release);
                    pool.free(window.node);
                })
            });
            if is_done.is_some() {
                return true;
            }
        }
    }
}
