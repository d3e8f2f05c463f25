//! Two CPUs that change one line by compare-and-swap: the share of successes, and the attempts a
//! second.
//!
//! A line that has arrived at a CPU stays there for a while before the other CPU gets it (the
//! *hold*). The longer it stays, the more often a compare-and-swap finds the value that its load
//! has read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use manycore::sync::CachePadded;

use super::pair;
use super::sample::{Reading, Sample};
use super::topology::Distance;
use crate::failure::Failure;

const BATCHES: usize = 60;
const BATCH: Duration = Duration::from_millis(2);

/// Contention between two CPUs at this distance: the share of successes in percent, and nanoseconds
/// for each success of either.
pub(super) fn measure(a: usize, b: usize, distance: Distance) -> Result<Vec<Reading>, Failure> {
    let word = CachePadded(AtomicU64::new(0));
    // Relaxed throughout: only the values of the word matter.
    let stop = CachePadded(AtomicU64::new(0));
    let first = || {
        let batch = |_| {
            let before = word.load(Ordering::Relaxed);
            let (start, mut won, mut tried) = (Instant::now(), 0u64, 0u64);
            while start.elapsed() < BATCH {
                for _ in 0..1_000 {
                    won += u64::from(increment(&word));
                    tried += 1;
                }
            }
            let all = word.load(Ordering::Relaxed) - before;
            let ns = start.elapsed().as_nanos() as f64;
            (100.0 * won as f64 / tried as f64, ns / all.max(1) as f64)
        };
        let batches: Vec<(f64, f64)> = (0..BATCHES).map(batch).collect();
        stop.store(1, Ordering::Relaxed);
        batches
    };
    let second = || {
        while stop.load(Ordering::Relaxed) == 0 {
            (0..1_000).for_each(|_| _ = increment(&word));
        }
    };
    let batches = pair::run([a, b], first, second)?;
    let (success, ns): (Vec<f64>, Vec<f64>) = batches.into_iter().unzip();
    let name = |what: &str| format!("{what}_{}", distance.name());
    Ok(vec![
        Sample::of(success).middle(
            name("cas_success"),
            "percent of the compare-and-swaps that succeed while another CPU tries, too",
        ),
        Sample::of(ns).middle(name("cas_interval"), "time between two that succeed, of either CPU"),
    ])
}

/// Whether no other thread came between the load and the swap.
#[inline]
fn increment(word: &AtomicU64) -> bool {
    // Relaxed throughout, as above.
    let value = word.load(Ordering::Relaxed);
    word.compare_exchange(value, value + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}
