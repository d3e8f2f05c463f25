//! Locks that share a cache line, and that are all used on several CPUs.

use std::collections::BTreeMap;

use crate::analyze::process::ProcessStats;
use crate::analyze::process::decode::Recorded;
use manycore_stats::Kind;

use crate::analyze::groups::Rows;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Fewer moves than this are no matter.
const MOVES_MIN: u64 = 1_000;
/// At least one acquisition in this many must have been on another CPU than the one before.
const PERIOD_MAX: u64 = 100;

/// Pairs of locks that share a line, of two rows of the profile or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Neighbours {
    /// How many pairs.
    pub pairs: u64,
    /// Acquisitions of the first lock of each pair on another CPU than the one before.
    pub moves: u64,
    /// Acquisitions of the second lock of each pair on another CPU than the one before.
    pub moves_beside: u64,
}

/// All such pairs, by the rows' indices, the lower one first.
pub(crate) fn of(stats: &[ProcessStats], rows: &Rows) -> BTreeMap<(usize, usize), Neighbours> {
    let mut found: BTreeMap<(usize, usize), Neighbours> = BTreeMap::new();
    for (process, one) in stats.iter().enumerate() {
        let mut moving: Vec<&Recorded> = one.recorded.iter().filter(|one| is_moving(one)).collect();
        moving.sort_by_key(|recorded| recorded.address);
        for (at, first) in moving.iter().enumerate() {
            let beside = moving[at + 1..].iter().take_while(|second| share_a_line(first, second));
            for second in beside {
                let row = |recorded: &Recorded| rows.get(&(process, recorded.number)).copied();
                let (Some(a), Some(b)) = (row(first), row(second)) else { continue };
                let sum = found.entry((a.min(b), a.max(b))).or_default();
                let (first, second) = if a <= b { (first, second) } else { (second, first) };
                sum.pairs += 1;
                sum.moves += first.tally.handoffs;
                sum.moves_beside += second.tally.handoffs;
            }
        }
    }
    found
}

/// Whether the lock moves between CPUs. The record of several objects describes no single address.
fn is_moving(recorded: &Recorded) -> bool {
    let tally = &recorded.tally;
    recorded.kind != Kind::Cond
        && !recorded.is_rest
        && recorded.objects == 1
        && tally.handoffs >= MOVES_MIN
        && tally.handoffs * PERIOD_MAX >= tally.acquired()
}

/// Whether the first object's last byte is in the line of the second object's first byte. Objects
/// whose addresses overlap did not exist at the same time.
fn share_a_line(first: &Recorded, second: &Recorded) -> bool {
    let size = match first.kind {
        Kind::RwLock => 56,
        Kind::Spin => 4,
        _ => 40,
    };
    let end = first.address + size;
    end <= second.address && (end - 1) / LINE == second.address / LINE
}
