//! `ascylib-lazy`: chains in the form of the lazy list, and a lock for each bucket.
//!
//! Source: S. Heller and others, "A Lazy Concurrent List-Based Set Algorithm", OPODIS 2005; the
//! form with a lock for each bucket is `lb-ht_lazy_gl` of ASCYLIB.

use manycore_simulated::lock::{PlainLock, Tas};
use manycore_simulated::sync::atomic::{AtomicPtr, Ordering};
use manycore_simulated::sync::hint;
use manycore_traits::{ConcurrentSet, SetHandle};

use super::nodes::{Node, Pool, Pools};

/// A bucket leads to a node without a key and to its lock. Locks and such nodes each lie beside
/// each other: sixteen and two to a line.
struct Bucket {
    first: AtomicPtr<Node>,
    lock: AtomicPtr<Tas>,
}

/// A hash table.
pub(super) struct LazyTable {
    buckets: Box<[Bucket]>,
    /// What the buckets lead to.
    _locks: Box<[Tas]>,
    _firsts: Box<[Node]>,
    pools: Pools,
}

impl LazyTable {
    pub const NAME: &'static str = "ascylib-lazy";

    /// For this many threads.
    pub fn new(threads: u32, buckets: u64) -> Self {
        Self::with_pools(Pools::new(threads), buckets)
    }

    pub fn with_pools(pools: Pools, buckets: u64) -> Self {
        let mut locks: Box<[Tas]> = (0..buckets).map(|_| Tas::new()).collect();
        let mut firsts: Box<[Node]> = (0..buckets).map(|_| Node::new(0)).collect();
        let pairs = firsts.iter_mut().zip(&mut locks);
        let bucket = |(first, lock): (&mut Node, &mut Tas)| Bucket {
            first: AtomicPtr::new(first),
            lock: AtomicPtr::new(lock),
        };
        Self { buckets: pairs.map(bucket).collect(), _locks: locks, _firsts: firsts, pools }
    }
}

impl ConcurrentSet<u64> for LazyTable {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        Handle { table: self, pool: self.pools.pool() }
    }
}

/// A thread's access.
pub(super) struct Handle<'a> {
    table: &'a LazyTable,
    pool: Pool<'a>,
}

/// The last node before a key, and the one behind that.
struct Place<'a> {
    before: &'a Node,
    node: *mut Node,
}

impl Place<'_> {
    /// The node, if it has the key.
    fn with(&self, key: u64) -> Option<&Node> {
        // SAFETY: a node's memory stays, and the pools give it to nobody while a thread can look.
        let node = unsafe { self.node.as_ref() };
        node.filter(|node| node.key() == key)
    }

    /// Whether both are there still, and follow each other. To be called under the lock.
    fn is_valid(&self) -> bool {
        // Relaxed: who has changed them had the lock.
        let is_marked = |node: &Node| node.is_marked.load(Ordering::Relaxed);
        // SAFETY: a node's memory stays, and the pools give it to nobody while a thread can look.
        let node = unsafe { self.node.as_ref() };
        !is_marked(self.before) && !node.is_some_and(is_marked) && self.before.next() == self.node
    }
}

impl<'a> Handle<'a> {
    fn bucket(&self, key: u64) -> &'a Bucket {
        let buckets = &self.table.buckets;
        &buckets[(key % buckets.len() as u64) as usize]
    }

    /// Where a key is, or would be.
    fn find(&self, key: u64) -> Place<'a> {
        // Relaxed: it does not change.
        let first = self.bucket(key).first.load(Ordering::Relaxed);
        // SAFETY: the table has it as long as itself.
        let mut before: &'a Node = unsafe { &*first };
        loop {
            let node = before.next();
            hint::unforeseen_branch();
            // SAFETY: a node's memory stays, and the pools give it to nobody while this thread
            // can look: it has made no step since it began.
            match unsafe { node.as_ref() } {
                Some(next) if next.key() < key => before = next,
                _ => return Place { before, node },
            }
        }
    }

    /// Does something under the lock of a key's bucket.
    fn locked<R>(&mut self, key: u64, change: impl FnOnce(&mut Pool<'a>) -> R) -> R {
        // Relaxed: it does not change.
        let lock = self.bucket(key).lock.load(Ordering::Relaxed);
        // SAFETY: the table has it as long as itself.
        let lock = unsafe { &*lock };
        lock.acquire();
        let result = change(&mut self.pool);
        // SAFETY: it was acquired above.
        unsafe { lock.release() };
        result
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        let place = self.find(*key);
        // Acquire: with the release of the mark.
        place.with(*key).is_some_and(|node| !node.is_marked.load(Ordering::Acquire))
    }

    fn insert(&mut self, key: u64) -> bool {
        loop {
            let place = self.find(key);
            if let Some(node) = place.with(key) {
                // Acquire: with the release of the mark.
                if node.is_marked.load(Ordering::Acquire) {
                    // It is on its way out.
                    hint::spin_loop();
                    continue;
                }
                return false;
            }
            let is_done = self.locked(key, |pool| {
                place.is_valid().then(|| {
                    let node = pool.allocate(key, place.node);
                    // Release: who follows the link sees what the node has.
                    place.before.next.store(node, Ordering::Release);
                })
            });
            if is_done.is_some() {
                return true;
            }
        }
    }

    fn remove(&mut self, key: &u64) -> bool {
        loop {
            let place = self.find(*key);
            let Some(node) = place.with(*key) else {
                return false;
            };
            let is_done = self.locked(*key, |pool| {
                place.is_valid().then(|| {
                    // Release: who sees the mark sees what was done before.
                    node.is_marked.store(true, Ordering::Release);
                    place.before.next.store(node.next(), Ordering::Release);
                    pool.free(place.node);
                })
            });
            if is_done.is_some() {
                return true;
            }
        }
    }
}
