//! The state of one file, while threads change its link count.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::shared::{Part, Shared, count_by_swap};

fn no_link_is_left(links: u64) -> Result<(), String> {
    match links {
        0 => Ok(()),
        left => Err(format!(
            "{} links are left although the threads removed as many as they made",
            left.cast_signed()
        )),
    }
}

/// One count that all threads change.
pub(super) struct SharedCount(CachePadded<AtomicU64>);

impl SharedCount {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(0)))
    }
}

impl Shared for SharedCount {
    fn knows(&self, part: Part) -> bool {
        matches!(part, Part::Stat | Part::Link)
    }

    fn stat(&self, links: bool, work: &dyn Fn(f64)) {
        work(1.0);
        if links {
            // Relaxed: a count.
            self.0.load(Ordering::Relaxed);
        }
    }

    fn link(&self, _: u32, work: &dyn Fn(f64)) {
        // Relaxed: a count, here and below.
        self.0.fetch_add(1, Ordering::Relaxed);
        work(0.5);
        self.0.fetch_sub(1, Ordering::Relaxed);
        work(0.5);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        no_link_is_left(self.0.load(Ordering::Relaxed))
    }
}

/// A core's part of a count, with a sequence number that tells readers of changes.
#[derive(Default)]
struct Delta {
    sequence: AtomicU32,
    links: AtomicU64,
}

/// The count of sv6's Refcache. Each core has a delta of its own. A thread that asks for the count
/// adds up the deltas of all cores, and reads their sequence numbers before and after.
pub(super) struct Deltas(Box<[CachePadded<Delta>]>);

/// The number of cores of the measured machine, whether or not threads run on them.
const CORES: u32 = 80;

impl Deltas {
    pub fn new(threads: u32) -> Self {
        Self((0..threads.max(CORES)).map(|_| CachePadded::default()).collect())
    }

    fn add(&self, thread: u32, links: u64) {
        let own = &self.0[thread as usize];
        // Relaxed: only this thread writes it. Release: a thread that sees the change also sees the
        // new sequence number.
        let before = own.sequence.load(Ordering::Relaxed);
        own.sequence.store(before.wrapping_add(1), Ordering::Relaxed);
        let links = own.links.load(Ordering::Relaxed).wrapping_add(links);
        own.links.store(links, Ordering::Release);
        own.sequence.store(before.wrapping_add(2), Ordering::Release);
    }
}

impl Shared for Deltas {
    fn knows(&self, part: Part) -> bool {
        matches!(part, Part::Stat | Part::Link)
    }

    fn stat(&self, links: bool, work: &dyn Fn(f64)) {
        work(1.0);
        if links {
            for delta in &self.0 {
                // Acquire: partner of the Release in `add`.
                delta.sequence.load(Ordering::Acquire);
                delta.links.load(Ordering::Acquire);
            }
            // The published kernel reads the numbers again, and goes on whatever it finds: its
            // `continue` restarts the inner loop instead of the outer one.
            for delta in &self.0 {
                delta.sequence.load(Ordering::Acquire); // Acquire: as above
            }
        }
    }

    fn link(&self, thread: u32, work: &dyn Fn(f64)) {
        self.add(thread, 1);
        work(0.5);
        self.add(thread, 1u64.wrapping_neg());
        work(0.5);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        let links = self.0.iter().map(|delta| delta.links.load(Ordering::Relaxed));
        no_link_is_left(links.fold(0, u64::wrapping_add))
    }
}

/// The reference count of Linux 3.5, with threads of one process. Each call takes a reference to
/// the open file, unless no thread has any (`fget_light`), and gives it back. Links are not
/// simulated: each takes two mutexes of the file, which sleep.
pub(super) struct References(CachePadded<AtomicU64>);

impl References {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(1)))
    }
}

impl Shared for References {
    fn knows(&self, part: Part) -> bool {
        part == Part::Stat
    }

    fn stat(&self, _: bool, work: &dyn Fn(f64)) {
        count_by_swap(&self.0, 1);
        work(1.0);
        // Relaxed: a count.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        no_link_is_left(self.0.load(Ordering::Relaxed) - 1)
    }
}
