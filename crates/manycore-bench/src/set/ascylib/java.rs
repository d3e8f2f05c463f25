//! `ascylib-java`: segments with a lock each, as in the first `ConcurrentHashMap` of Java.
//!
//! A segment's lock, count and the address of its table share a line. So readers of a segment
//! fetch that line after each update in it.
//!
//! Source: D. Lea, util.concurrent 1.3.4, 2003; here as `lb-ht_java` of ASCYLIB.

use std::cell::Cell;
use std::ptr::null_mut;

use manycore_simulated::lock::{PlainLock, Tas};
use manycore_simulated::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use manycore_simulated::sync::hint;
use manycore_traits::{ConcurrentSet, SetHandle};

use super::nodes::{Node, Pool, Pools};

const SEGMENTS: u64 = 512;

/// A segment: chains, and the lock, count and table address that they share.
#[repr(C, align(64))]
struct Segment {
    lock: Tas,
    /// The number of keys. Only the thread with the lock uses it.
    size: AtomicU32,
    /// The segment grows when it has this many keys.
    limit: u32,
    buckets: Box<[Line]>,
    /// The number of buckets: a power of two.
    count: usize,
    /// The smaller segment that this one replaced.
    smaller: Cell<*mut Segment>,
}

impl Segment {
    fn make(count: usize, size: u32, smaller: *mut Self) -> *mut Self {
        Box::into_raw(Box::new(Self {
            lock: Tas::new(),
            size: AtomicU32::new(size),
            limit: (count as u32 * 3 / 4).max(1),
            buckets: (0..count.div_ceil(8)).map(|_| Line::empty()).collect(),
            count,
            smaller: Cell::new(smaller),
        }))
    }

    /// The first link of a key's chain.
    fn bucket(&self, key: u64) -> &AtomicPtr<Node> {
        let number = (key / SEGMENTS) as usize & (self.count - 1);
        hint::touch(&raw const self.buckets);
        &self.buckets[number / 8].0[number % 8]
    }

    fn all(&self) -> impl Iterator<Item = &AtomicPtr<Node>> {
        (0..self.count as u64).map(|number| self.bucket(number * SEGMENTS))
    }
}

/// Eight buckets, aligned to a cache line.
#[repr(align(64))]
struct Line([AtomicPtr<Node>; 8]);

impl Line {
    fn empty() -> Self {
        Self(std::array::from_fn(|_| AtomicPtr::new(null_mut())))
    }
}

/// A hash table.
pub(super) struct SegmentedTable {
    segments: Box<[AtomicPtr<Segment>]>,
    pools: Pools,
}

// SAFETY: threads share segments through atomics; `smaller` is written before other threads see a
// segment.
unsafe impl Send for SegmentedTable {}
// SAFETY: threads share segments through atomics; `smaller` is read when no thread is left.
unsafe impl Sync for SegmentedTable {}

impl SegmentedTable {
    pub const NAME: &'static str = "ascylib-java";

    /// Creates a table for this many threads.
    pub fn new(threads: u32, buckets: u64) -> Self {
        Self::with_pools(Pools::new(threads), buckets)
    }

    pub fn with_pools(pools: Pools, buckets: u64) -> Self {
        // Large enough for all keys of the range, which has twice as many keys as there are
        // buckets. A segment does not shrink, and in a run of seconds each has had all its keys at
        // some time.
        let keys = (2 * buckets).div_ceil(SEGMENTS);
        let each = (4 * (keys + 1)).div_ceil(3).next_power_of_two() as usize;
        Self::with_segments(pools, each)
    }

    /// Creates a table whose segments begin with this many buckets.
    pub fn with_segments(pools: Pools, each: usize) -> Self {
        let segment = |_| AtomicPtr::new(Segment::make(each, 0, null_mut()));
        Self { segments: (0..SEGMENTS).map(segment).collect(), pools }
    }
}

impl ConcurrentSet<u64> for SegmentedTable {
    type Handle<'a> = Handle<'a>;

    fn handle(&self) -> Handle<'_> {
        Handle { table: self, pool: self.pools.pool() }
    }
}

impl Drop for SegmentedTable {
    fn drop(&mut self) {
        for segment in &mut self.segments {
            let mut segment = *segment.get_mut();
            while !segment.is_null() {
                // SAFETY: each segment is in exactly one of these lists, and no thread is left.
                segment = unsafe { Box::from_raw(segment) }.smaller.get();
            }
        }
    }
}

/// A thread's handle.
pub(super) struct Handle<'a> {
    table: &'a SegmentedTable,
    pool: Pool<'a>,
}

/// The link to a key's node, and that node; without such a node, the link at the end of its chain.
fn find(segment: &Segment, key: u64) -> (&AtomicPtr<Node>, Option<&Node>) {
    let mut link = segment.bucket(key);
    loop {
        hint::unforeseen_branch();
        // Acquire: partner of the Release by which the node was linked. SAFETY: a node's memory
        // stays. The pools do not reuse it while this thread can read it: the thread has made no
        // step since it began, or has the lock.
        let Some(node) = (unsafe { link.load(Ordering::Acquire).as_ref() }) else {
            return (link, None);
        };
        if node.key() == key {
            return (link, Some(node));
        }
        link = &node.next;
    }
}

impl<'a> Handle<'a> {
    fn link(&self, key: u64) -> &'a AtomicPtr<Segment> {
        &self.table.segments[(key % SEGMENTS) as usize]
    }

    fn segment(&self, key: u64) -> &'a Segment {
        // Acquire: partner of the Release by which a larger segment replaced it. SAFETY: segments
        // live as long as the table.
        unsafe { &*self.link(key).load(Ordering::Acquire) }
    }

    fn is_there(&self, key: u64) -> bool {
        find(self.segment(key), key).1.is_some()
    }

    /// Locks a key's segment. A segment that was replaced stays locked for ever.
    fn lock(&self, key: u64) -> &'a Segment {
        loop {
            let segment = self.segment(key);
            if segment.lock.try_acquire() {
                return segment;
            }
            hint::spin_loop();
        }
    }

    /// Replaces a locked segment by one with twice as many buckets, which has copies of its nodes
    /// and one key more.
    fn grow(&mut self, small: &'a Segment, key: u64) {
        let size = small.size.load(Ordering::Relaxed) + 1; // Relaxed: under the lock
        let large = Segment::make(2 * small.count, size, std::ptr::from_ref(small).cast_mut());
        // SAFETY: no other thread has its address yet.
        let fresh = unsafe { &*large };
        let mut copied = Vec::new();
        for bucket in small.all() {
            let mut node = bucket.load(Ordering::Relaxed); // Relaxed: under the lock
            // SAFETY: while this thread has the lock, no other takes a node out.
            while let Some(old) = unsafe { node.as_ref() } {
                self.put(fresh.bucket(old.key()), old.key());
                copied.push(node);
                node = old.next();
            }
        }
        self.put(fresh.bucket(key), key);
        // Release: a thread that reads the link sees what the segment has.
        self.link(key).store(large, Ordering::Release);
        // Only now: until here, other threads could begin with these nodes.
        copied.into_iter().for_each(|node| self.pool.free(node));
    }

    /// Puts a key at the beginning of a chain.
    fn put(&mut self, link: &AtomicPtr<Node>, key: u64) {
        // Relaxed: this thread has the lock.
        let node = self.pool.allocate(key, link.load(Ordering::Relaxed));
        // Release: a thread that follows the link sees what the node has.
        link.store(node, Ordering::Release);
    }
}

impl SetHandle<u64> for Handle<'_> {
    fn contains(&mut self, key: &u64) -> bool {
        self.is_there(*key)
    }

    fn insert(&mut self, key: u64) -> bool {
        if self.is_there(key) {
            return false;
        }
        let segment = self.lock(key);
        let (link, found) = find(segment, key);
        let is_new = found.is_none();
        let size = segment.size.load(Ordering::Relaxed) + 1; // Relaxed: under the lock
        if is_new && size >= segment.limit {
            self.grow(segment, key);
            return true;
        }
        if is_new {
            self.put(link, key);
            segment.size.store(size, Ordering::Relaxed); // Relaxed: under the lock
        }
        // SAFETY: this thread holds the lock: `lock` has acquired it, and it is released once.
        unsafe { segment.lock.release() };
        is_new
    }

    fn remove(&mut self, key: &u64) -> bool {
        if !self.is_there(*key) {
            return false;
        }
        let segment = self.lock(*key);
        let (link, found) = find(segment, *key);
        let is_done = found.is_some();
        if let Some(node) = found {
            // Release: as the link that this store replaces.
            link.store(node.next(), Ordering::Release);
            self.pool.free(std::ptr::from_ref(node).cast_mut());
            let size = segment.size.load(Ordering::Relaxed); // Relaxed: under the lock
            segment.size.store(size - 1, Ordering::Relaxed);
        }
        // SAFETY: this thread holds the lock: `lock` has acquired it, and it is released once.
        unsafe { segment.lock.release() };
        is_done
    }
}
