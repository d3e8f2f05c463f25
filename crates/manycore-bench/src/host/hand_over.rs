//! A word that two CPUs hand to each other by compare-and-swap, measured for each pair of CPUs:
//! from this matrix `machines derive` makes a model.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use manycore::sync::CachePadded;

use super::pair;
use crate::cpus;
use crate::failure::Failure;

/// The number of batches of a pair. The fastest one counts, because other activity of the machine
/// can only make a batch longer.
const BATCHES: u32 = 15;

/// Hand-overs there and back in a batch.
const ROUNDS: u32 = 500;

/// The most CPUs. If there are more, evenly spaced ones are measured, since the number of pairs
/// grows with the square.
const MOST: usize = 256;

/// Nanoseconds one way between each pair of CPUs that this process may run on. `progress` is
/// called for each CPU.
pub(crate) fn matrix(mut progress: impl FnMut(usize, usize)) -> Result<Vec<Vec<f64>>, Failure> {
    let cpus: Vec<usize> = cpus::allowed();
    if cpus.len() < 2 {
        return Err(Failure::Failed("hand-overs take two CPUs, and this has one".into()));
    }
    if cpus.len() > MOST {
        return Err(Failure::Failed(format!(
            "hand-overs are measured of up to {MOST} CPUs; choose some with `taskset`, whole groups of cores"
        )));
    }
    let mut matrix = vec![vec![0.0; cpus.len()]; cpus.len()];
    for from in 1..cpus.len() {
        progress(from, cpus.len());
        for to in 0..from {
            let ns = between(cpus[from], cpus[to])?;
            (matrix[from][to], matrix[to][from]) = (ns, ns);
        }
    }
    Ok(matrix)
}

fn between(a: usize, b: usize) -> Result<f64, Failure> {
    let word = CachePadded(AtomicU32::new(0));
    // Relaxed: only the values of the word matter.
    let hand = |own: u32| {
        while word.compare_exchange(own, 1 - own, Ordering::Relaxed, Ordering::Relaxed).is_err() {}
    };
    let first = || {
        let batch = |_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| hand(0));
            start.elapsed().as_nanos() as f64 / f64::from(2 * ROUNDS)
        };
        (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
    };
    let second = || (0..BATCHES * ROUNDS).for_each(|_| hand(1));
    pair::run([a, b], first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_take_some_time() {
        if cpus::allowed().len() < 2 {
            return; // there is no pair to measure
        }
        let matrix = matrix(|_, _| {}).unwrap();
        for (from, row) in matrix.iter().enumerate() {
            let is_sound = |(to, ns): (usize, &f64)| (from == to) == (*ns == 0.0) && *ns < 1e6;
            assert!(row.iter().enumerate().all(is_sound), "{row:?}");
        }
    }
}
