//! The state of one file, beside changes of its link count.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::shared::{Part, Shared};

fn no_link_is_left(links: u64) -> Result<(), String> {
    match links {
        0 => Ok(()),
        left => Err(format!("{} links are left, and all were taken away", left.cast_signed())),
    }
}

/// One count that all change.
pub(super) struct SharedCount(CachePadded<AtomicU64>);

impl SharedCount {
    pub fn new() -> Self {
        Self(CachePadded(AtomicU64::new(0)))
    }
}

impl Shared for SharedCount {
    fn knows(&self, part: Part) -> bool {
        part != Part::OpenAndClose
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

/// A core's part of a count, with what tells a reader that it changes.
#[derive(Default)]
struct Delta {
    sequence: AtomicU32,
    links: AtomicU64,
}

/// sv6's Refcache: each core has a delta of its own, and who asks for the count adds up those of
/// all cores of the machine, reading what tells of changes before and after.
pub(super) struct Deltas(Box<[CachePadded<Delta>]>);

/// Cores of the machine that was measured, whether or not a thread is on them.
const CORES: u32 = 80;

impl Deltas {
    pub fn new(threads: u32) -> Self {
        Self((0..threads.max(CORES)).map(|_| CachePadded::default()).collect())
    }

    fn add(&self, thread: u32, links: u64) {
        let own = &self.0[thread as usize];
        // Relaxed: nobody else writes it. Release: who sees the change sees that there is one.
        let before = own.sequence.load(Ordering::Relaxed);
        own.sequence.store(before.wrapping_add(1), Ordering::Relaxed);
        let links = own.links.load(Ordering::Relaxed).wrapping_add(links);
        own.links.store(links, Ordering::Release);
        own.sequence.store(before.wrapping_add(2), Ordering::Release);
    }
}

impl Shared for Deltas {
    fn knows(&self, part: Part) -> bool {
        part != Part::OpenAndClose
    }

    fn stat(&self, links: bool, work: &dyn Fn(f64)) {
        work(1.0);
        if links {
            for delta in &self.0 {
                // Acquire: with the release of `add`.
                delta.sequence.load(Ordering::Acquire);
                delta.links.load(Ordering::Acquire);
            }
            // The published kernel reads them again, and goes on whatever it finds: the loop that
            // was to begin anew is the inner one.
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

/// Linux 3.5 with threads of one process: each call takes a reference to the open file, unless
/// nobody has any (`fget_light`), and gives it back. Links are not simulated: each holds two
/// mutexes of the file, which sleep.
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
        // Relaxed: a count, here and below.
        let mut seen = self.0.load(Ordering::Relaxed);
        while let Err(now) =
            self.0.compare_exchange(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed)
        {
            seen = now;
        }
        work(1.0);
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn verify(&self) -> Result<(), String> {
        // Relaxed: all threads have ended.
        no_link_is_left(self.0.load(Ordering::Relaxed) - 1)
    }
}
