//! Nodes, and the memory of each thread from which they come.
//!
//! A thread collects the nodes that it removes in batches. It reuses a full batch once each thread
//! has made or freed a node since then, as ssmem does, the allocator of ASCYLIB. A thread makes and
//! frees nodes with a lock held, after it has checked again what it found before. So after such a
//! step it holds no node that was removed earlier.

use std::collections::VecDeque;
use std::ptr::null_mut;

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A key in a bucket.
#[repr(C, align(32))]
pub(super) struct Node {
    pub key: AtomicU64,
    pub next: AtomicPtr<Node>,
    /// Whether the node was removed. Only the lazy table uses it.
    pub is_marked: AtomicBool,
}

impl Node {
    pub fn new(key: u64) -> Self {
        Self {
            key: AtomicU64::new(key),
            next: AtomicPtr::new(null_mut()),
            is_marked: AtomicBool::new(false),
        }
    }

    /// The node's key, which does not change while a thread can read it.
    pub fn key(&self) -> u64 {
        // Relaxed: the Acquire of the link that led here orders it.
        self.key.load(Ordering::Relaxed)
    }

    pub fn next(&self) -> *mut Self {
        // Acquire: partner of the Release by which a node is linked.
        self.next.load(Ordering::Acquire)
    }
}

/// The most nodes that a thread makes at a time: 2 KiB.
const CHUNK: usize = 64;

/// The number of nodes in a batch, as in ssmem.
const BATCH: usize = 507;

/// The memory of all threads.
pub(super) struct Pools {
    threads: Box<[CachePadded<Shared>]>,
    batch: usize,
}

/// A thread's own memory, and the counts that other threads read.
struct Shared {
    is_taken: AtomicBool,
    /// How many nodes the thread has made and freed.
    steps: AtomicU64,
    /// For the thread that has taken it.
    own: std::cell::UnsafeCell<Own>,
}

#[derive(Default)]
struct Own {
    chunks: Vec<Box<[Node]>>,
    unused: Vec<*mut Node>,
    freed: Vec<*mut Node>,
    waiting: VecDeque<Batch>,
}

/// Nodes that were removed, and how far each thread was when the batch became full.
struct Batch {
    nodes: Vec<*mut Node>,
    steps: Vec<u64>,
}

// SAFETY: only the thread that has taken private memory uses it; threads share nodes through
// atomics.
unsafe impl Send for Pools {}
// SAFETY: a shared `Pools` gives private memory only to the thread that has taken it.
unsafe impl Sync for Pools {}

impl Pools {
    /// Creates memory for this many threads. The thread that fills and verifies the table runs only
    /// before and after them.
    pub fn new(threads: u32) -> Self {
        Self::with_batch(threads, BATCH)
    }

    pub fn with_batch(threads: u32, batch: usize) -> Self {
        let shared = |_| {
            CachePadded(Shared {
                is_taken: AtomicBool::new(false),
                steps: AtomicU64::new(0),
                own: std::cell::UnsafeCell::new(Own::default()),
            })
        };
        Self { threads: (0..threads.max(1)).map(shared).collect(), batch }
    }

    /// The calling thread's memory.
    pub fn pool(&self) -> Pool<'_> {
        // Acquire: partner of the Release by which another thread has given it back.
        let take = |shared: &CachePadded<Shared>| !shared.is_taken.swap(true, Ordering::Acquire);
        let me = self
            .threads
            .iter()
            .position(take)
            .expect("there is memory for as many threads as `new` was told");
        let mut pool = Pool { pools: self, me };
        // A thread that has run for some time has nodes in its cache.
        if pool.own().unused.is_empty() {
            pool.make_chunk();
        }
        pool
    }

    fn steps(&self) -> impl Iterator<Item = u64> {
        // Acquire: partner of the Release of a step, after which that thread holds no older node.
        self.threads.iter().map(|shared| shared.steps.load(Ordering::Acquire))
    }

    /// Whether no thread holds a node of a batch any more.
    fn is_ripe(&self, batch: &Batch) -> bool {
        // Acquire: partner of the Release by which a thread that ends gives its memory back.
        let is_gone = |me: usize| !self.threads[me].is_taken.load(Ordering::Acquire);
        let mut steps = self.steps().zip(&batch.steps).enumerate();
        steps.all(|(me, (now, then))| now != *then || is_gone(me))
    }
}

/// A thread's memory.
pub(super) struct Pool<'a> {
    pools: &'a Pools,
    me: usize,
}

impl Pool<'_> {
    fn own(&mut self) -> &mut Own {
        // SAFETY: this handle has taken it, and is borrowed exclusively.
        unsafe { &mut *self.pools.threads[self.me].own.get() }
    }

    fn step(&self) {
        let steps = &self.pools.threads[self.me].steps;
        // Relaxed: only this thread writes it. Release: partner of the Acquire in `Pools::steps`.
        steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn make_chunk(&mut self) {
        let nodes = CHUNK.min(self.pools.batch);
        let mut chunk: Box<[Node]> = (0..nodes).map(|_| Node::new(0)).collect();
        // Relaxed: no other thread has these nodes. Making a node costs no simulated time, but this
        // store brings the line into the cache.
        chunk.iter().for_each(|node| node.key.store(0, Ordering::Relaxed));
        let own = self.own();
        own.unused.extend(chunk.iter_mut().map(std::ptr::from_mut));
        own.chunks.push(chunk);
    }

    /// Makes a node that only this thread has. Call it with the lock of the node's bucket held.
    pub fn allocate(&mut self, key: u64, next: *mut Node) -> *mut Node {
        self.step();
        if self.own().unused.is_empty() {
            let pools = self.pools;
            let waiting = &mut self.own().waiting;
            let is_ripe = waiting.front().is_some_and(|batch| pools.is_ripe(batch));
            let ripe = if is_ripe { waiting.pop_front() } else { None };
            match ripe {
                Some(batch) => self.own().unused = batch.nodes,
                None => self.make_chunk(),
            }
        }
        let node = self.own().unused.pop().expect("the pool has just got nodes");
        // SAFETY: the chunks live as long as the pools, and no other thread has this node.
        let fresh = unsafe { &*node };
        // Relaxed: the Release of the link to the node orders them.
        fresh.key.store(key, Ordering::Relaxed);
        fresh.next.store(next, Ordering::Relaxed);
        fresh.is_marked.store(false, Ordering::Relaxed);
        node
    }

    /// Takes back a node that this thread has removed from its bucket, with the bucket's lock held.
    pub fn free(&mut self, node: *mut Node) {
        self.step();
        self.own().freed.push(node);
        if self.own().freed.len() == self.pools.batch {
            let steps = self.pools.steps().collect();
            let nodes = std::mem::take(&mut self.own().freed);
            self.own().waiting.push_back(Batch { nodes, steps });
        }
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        // Release: partner of the Acquire of the thread that takes it next, or that checks whether
        // this thread has ended.
        self.pools.threads[self.me].is_taken.store(false, Ordering::Release);
    }
}
