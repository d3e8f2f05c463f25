//! Nodes, and the memory of each thread that they come from.
//!
//! A thread puts the nodes that it has taken out into batches. A batch is used again when each
//! thread has made or freed a node since it was full, as in ssmem, the allocator of ASCYLIB. A
//! thread makes and frees nodes under a lock, when it has looked again at what it found before:
//! so after that it holds no node that was taken out earlier.

use std::collections::VecDeque;
use std::ptr::null_mut;

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A key in a bucket.
#[repr(C, align(32))]
pub(super) struct Node {
    pub key: AtomicU64,
    pub next: AtomicPtr<Node>,
    /// Whether it was taken out. Only the lazy table sets and reads it.
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

    /// Its key, which does not change while a thread can look at it.
    pub fn key(&self) -> u64 {
        // Relaxed: the acquire of the link that led here orders it.
        self.key.load(Ordering::Relaxed)
    }

    pub fn next(&self) -> *mut Self {
        // Acquire: with the release by which a node is linked.
        self.next.load(Ordering::Acquire)
    }
}

/// Nodes of a thread's memory that are made at a time, at most: 2 KiB.
const CHUNK: usize = 64;

/// Nodes of a batch, as ssmem has them.
const BATCH: usize = 507;

/// The memory of all threads.
pub(super) struct Pools {
    threads: Box<[CachePadded<Shared>]>,
    batch: usize,
}

/// What a thread has, and what others look at.
struct Shared {
    is_taken: AtomicBool,
    /// How many nodes it has made and freed.
    steps: AtomicU64,
    /// Of the thread that has taken it.
    own: std::cell::UnsafeCell<Own>,
}

#[derive(Default)]
struct Own {
    chunks: Vec<Box<[Node]>>,
    unused: Vec<*mut Node>,
    freed: Vec<*mut Node>,
    waiting: VecDeque<Batch>,
}

/// Nodes that were taken out, and how far each thread was then.
struct Batch {
    nodes: Vec<*mut Node>,
    steps: Vec<u64>,
}

// SAFETY: what is private to a thread is used by the one that has taken it; nodes are shared
// through atomics.
unsafe impl Send for Pools {}
// SAFETY: a shared `Pools` gives what is private to the one thread that has taken it.
unsafe impl Sync for Pools {}

impl Pools {
    /// For this many threads. The thread that fills the table, and verifies it, is there when these
    /// are not.
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
        // Acquire: with the release by which another thread has given it back.
        let take = |shared: &CachePadded<Shared>| !shared.is_taken.swap(true, Ordering::Acquire);
        let me = self.threads.iter().position(take).expect("no more threads than it was made for");
        let mut pool = Pool { pools: self, me };
        // A thread that has run for long has nodes in its cache.
        if pool.own().unused.is_empty() {
            pool.make_chunk();
        }
        pool
    }

    fn steps(&self) -> impl Iterator<Item = u64> {
        // Acquire: with the release of a step, after which that thread holds no older node.
        self.threads.iter().map(|shared| shared.steps.load(Ordering::Acquire))
    }

    /// Whether nobody holds a node of a batch any more.
    fn is_ripe(&self, batch: &Batch) -> bool {
        // Acquire: with the release by which a thread that has ended has given its memory back.
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
        // SAFETY: this handle has taken it, and is borrowed.
        unsafe { &mut *self.pools.threads[self.me].own.get() }
    }

    fn step(&self) {
        let steps = &self.pools.threads[self.me].steps;
        // Relaxed: only this thread writes it. Release: with the acquire in `Pools::steps`.
        steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn make_chunk(&mut self) {
        let nodes = CHUNK.min(self.pools.batch);
        let mut chunk: Box<[Node]> = (0..nodes).map(|_| Node::new(0)).collect();
        // Relaxed: nobody else has them. What they are made with takes no time; a store takes the
        // line.
        chunk.iter().for_each(|node| node.key.store(0, Ordering::Relaxed));
        let own = self.own();
        own.unused.extend(chunk.iter_mut().map(std::ptr::from_mut));
        own.chunks.push(chunk);
    }

    /// A node that only this thread has. To be called under the lock of its bucket.
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
        let node = self.own().unused.pop().expect("there is one now");
        // SAFETY: the chunks live as long as the pools, and nobody else has this node.
        let fresh = unsafe { &*node };
        // Relaxed: the release of the link to it orders them.
        fresh.key.store(key, Ordering::Relaxed);
        fresh.next.store(next, Ordering::Relaxed);
        fresh.is_marked.store(false, Ordering::Relaxed);
        node
    }

    /// Takes a node back that was taken out of its bucket, by this thread and under its lock.
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
        // Release: with the acquire of who takes it next, or looks whether the thread is gone.
        self.pools.threads[self.me].is_taken.store(false, Ordering::Release);
    }
}
