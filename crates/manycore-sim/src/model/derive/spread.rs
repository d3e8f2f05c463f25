//! A number that was measured several times.

/// A number with the range of its measured values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub value: f64,
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Spread {
    /// The median of sorted numbers, with the smallest and the largest.
    pub(super) fn of<'a>(sorted: impl Iterator<Item = &'a f64>) -> Self {
        let sorted: Vec<f64> = sorted.copied().collect();
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Self { value: at(0.5), low: at(0.0), high: at(1.0) }
    }
}
