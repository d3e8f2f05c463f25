//! Which thread made which other wait.

use std::collections::HashMap;

use crate::analyze::names::symbols::{StackId, Symbols};
use crate::analyze::process::ProcessStats;
use crate::profile::{Blocking, Frame, Lock};
use manycore_stats::BY_STACK;

use crate::analyze::groups::Rows;

/// This many are kept.
const KEPT: usize = 200;

/// Pairs of a place that waited and a place that had taken the lock, the longest waits first.
pub fn of(
    stats: &[ProcessStats],
    rows: &Rows,
    locks: &[Lock],
    symbols: &mut Symbols,
) -> Vec<Blocking> {
    // Sampled waits, and their time in ticks.
    let mut sums: HashMap<(usize, StackId, StackId), (u64, u64)> = HashMap::new();
    let mut sampled: HashMap<usize, u64> = HashMap::new();
    for (process, one) in stats.iter().enumerate() {
        for held in &one.noted.blocked {
            let Some(lock) = rows.get(&(process, held.record)) else { continue };
            *sampled.entry(*lock).or_default() += held.wait;
            let waiter = symbols.stack(one.stack(held.stack), &one.modules);
            let holder = match held.holder & BY_STACK {
                0 => symbols.stack(one.beside(held.stack, &[held.holder]), &one.modules),
                _ => symbols.stack(one.stack(held.holder as u32), &one.modules),
            };
            let sum = sums.entry((*lock, waiter, holder)).or_default();
            *sum = (sum.0 + held.waits, sum.1 + held.wait);
        }
    }
    let blocking = sums.into_iter().map(|((lock, waiter, holder), (waits, ticks))| {
        // The samples of a lock stand for all its waits.
        let share = ticks as f64 / sampled[&lock].max(1) as f64;
        Blocking {
            lock,
            waits,
            wait_ns: (locks[lock].wait.total_ns as f64 * share).round() as u64,
            waiter: symbols.frames(waiter),
            holder: symbols.frames(holder),
        }
    });
    let mut blocking: Vec<_> = blocking.collect();
    blocking.sort_by(|a, b| {
        let place = |frames: &[Frame]| frames.first().map(|f| (f.module.clone(), f.address));
        (b.wait_ns, b.waits, a.lock)
            .cmp(&(a.wait_ns, a.waits, b.lock))
            .then_with(|| place(&a.waiter).cmp(&place(&b.waiter)))
            .then_with(|| place(&a.holder).cmp(&place(&b.holder)))
    });
    blocking.truncate(KEPT);
    blocking
}
