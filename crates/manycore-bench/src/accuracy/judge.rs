//! Claims about the simulator.

use manycore_measure::{Bound, Claim};

use super::LockAccuracy;
use super::comparison::{Comparison, errors, median, order, p90};

/// The most threads that the claims are about: as many as the host of the study has CPUs. Beyond
/// that, the scheduler decides.
pub(crate) const THREADS: u32 = 2;

/// Judges throughput and order. The claims' ids begin with `prefix`. The values hold exactly for
/// the comparisons that were made.
pub(crate) fn throughput(prefix: &str, comparisons: &[Comparison]) -> Vec<Claim> {
    let few: Vec<&Comparison> = comparisons.iter().filter(|c| c.threads <= THREADS).collect();
    let sorted = errors(few.iter().copied());
    let (same, pairs) = order(few.iter().copied());
    let compared = format!("{} comparisons at 1 and 2 threads", few.len());
    let agreed = (pairs > 0).then(|| same as f64 / pairs as f64);
    vec![
        claim(
            &format!("{prefix}-median"),
            "median error of throughput",
            Bound::AtMost(0.2),
            median(&sorted),
            &compared,
        ),
        claim(
            &format!("{prefix}-p90"),
            "90th percentile of the error",
            Bound::AtMost(0.4),
            p90(&sorted),
            &compared,
        ),
        claim(
            &format!("{prefix}-order"),
            "pairs in the native order, of those over 15 % apart",
            Bound::AtLeast(0.9),
            agreed,
            &format!("{same} of {pairs} pairs at 1 and 2 threads"),
        ),
    ]
}

/// Judges the study of locks.
pub(crate) fn claims(found: &LockAccuracy) -> Vec<Claim> {
    let mut parking: Vec<f64> =
        found.parking.iter().map(|(parked, polling)| (parked / polling - 1.0).abs()).collect();
    parking.sort_unstable_by(f64::total_cmp);
    let parking = claim(
        "accuracy-parking",
        "90th percentile of what parking changes",
        Bound::AtMost(0.05),
        p90(&parking),
        &format!("{} simulations of 2 threads", parking.len()),
    );
    let mut claims = throughput("accuracy", &found.comparisons);
    claims.push(parking);
    claims
}

/// A claim that is met if the value is within the bound.
pub(crate) fn claim(id: &str, text: &str, bound: Bound, value: Option<f64>, note: &str) -> Claim {
    Claim {
        value,
        verdict: bound.judge(value.map(|value| (value, value))),
        note: note.into(),
        ..Claim::open(id, text, bound)
    }
}
