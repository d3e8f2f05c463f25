//! Loads that depend on each other, over areas that fit each level of cache, and over one that fits
//! none.

use manycore_placement::Cache;

use std::hint::black_box;

use super::not_pinned;
use super::sample::{Reading, batches};
use crate::cpus;
use crate::failure::Failure;

/// Loads of one batch.
const STEPS: u32 = 20_000;
const BATCHES: usize = 60;

/// The least size of the area that fits into no cache, and its least size relative to the last
/// level.
const MEMORY_BYTES_MIN: u64 = 256 << 20;
const MEMORY_TIMES_LAST: u64 = 4;

/// Indices into an area, one to a cache line, that lead through all of its lines in random order
/// and back.
struct Area {
    next: Vec<u32>,
}

/// Indices of 4 bytes to a line of 64.
const STRIDE: usize = 16;

/// The number of other lines that are loaded as well, to measure their cost.
pub(super) const MORE: usize = 4;

impl Area {
    fn new(bytes: u64) -> Self {
        let lines = (bytes as usize / 64).max(2);
        // Sattolo's shuffle: one cycle through all lines, so that no prefetcher knows the next.
        let mut order: Vec<u32> = (0..lines as u32).collect();
        let mut random = fastrand::Rng::with_seed(1);
        for place in (1..lines).rev() {
            order.swap(place, random.usize(..place));
        }
        let mut area = Self { next: vec![0; lines * STRIDE] };
        advise_huge_pages(&mut area.next);
        for (line, next) in order.into_iter().enumerate() {
            area.next[line * STRIDE] = next * STRIDE as u32;
        }
        area
    }

    /// As [`walk`](Self::walk), with [`MORE`] loads of each line on which nothing depends.
    fn walk_and_look(&self, from: &mut u32) {
        for _ in 0..STEPS {
            for more in 1..=MORE {
                // Each is to be a load, whatever becomes of it.
                black_box(self.next[*from as usize + more]);
            }
            *from = self.next[*from as usize];
        }
    }

    fn walk(&self, from: &mut u32) {
        for _ in 0..STEPS {
            *from = self.next[*from as usize];
        }
    }
}

/// Requests large pages, so that the cache is timed and not the translation of addresses.
fn advise_huge_pages(memory: &mut [u32]) {
    const HUGE: usize = 2 << 20;
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().addr();
    let aligned = start.next_multiple_of(HUGE);
    if bytes >= 2 * HUGE {
        let whole = (start + bytes - aligned) / HUGE * HUGE;
        let base = memory.as_mut_ptr().wrapping_byte_add(aligned - start);
        // SAFETY: the range lies within `memory`, and the advice changes only its mapping. If the
        // kernel refuses, the walk is slower, and the reading is still the value that such a
        // program sees.
        unsafe { libc::madvise(base.cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

/// Measures from the given CPU: a reading for each cache that the kernel lists (`load_l1`, ...),
/// `load_memory`, and `look_l1`.
pub(super) fn measure(cpu: usize, caches: &[Cache]) -> Result<Vec<Reading>, Failure> {
    let caches = caches.to_vec();
    on_its_own_thread(move || {
        cpus::pin(cpu).map_err(not_pinned)?;
        let last = caches.last().map_or(0, |cache| cache.bytes);
        let memory = (last * MEMORY_TIMES_LAST).max(MEMORY_BYTES_MIN);
        let levels = (0..caches.len())
            .map(|index| (format!("load_l{}", caches[index].level), area_for(&caches, index)));
        let areas = levels.chain([("load_memory".to_string(), memory)]);
        // If the machine does not report its nearest cache, the cost of other loads of a line is
        // not measured.
        let near = caches.first().filter(|nearest| nearest.level == 1);
        let near = near.map(|_| look(area_for(&caches, 0)));
        Ok(areas.map(|(name, bytes)| step(&name, bytes)).chain(near).collect())
    })
}

/// The number of bytes of an area that fits into a cache but into no nearer one. Other programs use
/// a last level as well, so the area takes only a part of it.
fn area_for(caches: &[Cache], index: usize) -> u64 {
    let half = caches[index].bytes / 2;
    let nearer = index.checked_sub(1).map(|nearer| 4 * caches[nearer].bytes);
    nearer.map_or(half, |enough| enough.min(half))
}

fn step(name: &str, bytes: u64) -> Reading {
    let area = Area::new(bytes);
    let mut from = 0;
    let sample = batches(BATCHES, STEPS, || area.walk(&mut from));
    black_box(from);
    sample.reading(name, format!("loads that depend on each other, over {} KiB", bytes >> 10))
}

fn look(bytes: u64) -> Reading {
    let area = Area::new(bytes);
    let mut from = 0;
    let sample = batches(BATCHES, STEPS, || area.walk_and_look(&mut from));
    black_box(from);
    let what = format!("as load_l1, with {MORE} loads more of each line, over {} KiB", bytes >> 10);
    sample.reading("look_l1", what)
}

/// Runs on a thread of its own, so that the caller keeps its CPUs.
pub(super) fn on_its_own_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let panicked = || Failure::Failed("a thread of the measurement panicked".into());
    std::thread::spawn(run).join().unwrap_or_else(|_| Err(panicked()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_fit_a_cache_but_no_nearer_one() {
        let cache = |level, kib: u64| Cache { level, bytes: kib << 10, ways: 8 };
        let caches = [cache(1, 32), cache(2, 1024), cache(3, 32 << 10)];
        let areas = [0, 1, 2].map(|index| area_for(&caches, index) >> 10);
        assert_eq!(areas, [16, 128, 4096]);
        assert_eq!(area_for(&[cache(2, 256), cache(3, 512)], 1) >> 10, 256);
    }

    #[test]
    fn a_walk_meets_every_line() {
        let area = Area::new(64 * 100);
        let (mut at, mut seen) = (0u32, std::collections::BTreeSet::new());
        for _ in 0..100 {
            at = area.next[at as usize];
            seen.insert(at);
        }
        assert_eq!((seen.len(), at), (100, 0));
    }
}
