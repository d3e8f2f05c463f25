//! Counts of the factors within their band, of the pairs in order, and of the knees that agree: for
//! all points, or for those of a kind or a machine.

use manycore_measure::{Bound, Claim};

use super::factor::{Factor, curves, factors, knees_agree, pairs};
use super::set::Kind;
use super::{Compared, PublishedAccuracy};
use crate::accuracy::comparison::{median, p90};
use crate::accuracy::judge::claim;

/// The counts of some points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub factors: usize,
    pub within: usize,
    /// The errors of factors: the median, and the 90th percentile.
    pub median: Option<f64>,
    pub p90: Option<f64>,
    pub pairs: usize,
    pub agree: usize,
    pub curves: usize,
    pub knees: usize,
}

impl Tally {
    pub fn of(compared: &[Compared]) -> Self {
        let pairs = pairs(compared);
        let curves: Vec<_> = curves(compared).into_iter().filter(|curve| curve.len() > 2).collect();
        Self {
            pairs: pairs.len(),
            agree: pairs.iter().filter(|pair| pair.agrees()).count(),
            curves: curves.len(),
            knees: curves.iter().filter(|curve| knees_agree(curve)).count(),
            ..Self::of_factors(&factors(compared))
        }
    }

    /// Counts these factors, and nothing else.
    pub fn of_factors<'a>(factors: impl IntoIterator<Item = &'a Factor<'a>>) -> Self {
        let factors: Vec<&Factor> = factors.into_iter().collect();
        let mut off: Vec<f64> = factors.iter().map(|factor| factor.off()).collect();
        off.sort_unstable_by(f64::total_cmp);
        Self {
            factors: factors.len(),
            within: factors.iter().filter(|factor| factor.is_within()).count(),
            median: median(&off),
            p90: p90(&off),
            ..Self::default()
        }
    }
}

/// `part` of `all`; `None` if there is nothing.
pub(super) fn share(part: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// The kinds of sets that have judged points.
pub(super) fn kinds(compared: &[Compared]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> =
        compared.iter().filter(|one| one.judged).map(|one| one.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// The judged points of one kind, or of all kinds.
pub(super) fn judged(compared: &[Compared], kind: Option<Kind>) -> Vec<Compared> {
    let is_asked = |one: &&Compared| one.judged && kind.is_none_or(|kind| one.kind == kind);
    compared.iter().filter(is_asked).cloned().collect()
}

/// The claims about the simulator.
pub(super) fn claims(found: &PublishedAccuracy) -> Vec<Claim> {
    let all = Tally::of(&judged(&found.compared, None));
    let of_kind = |kind: Kind| {
        let Tally { factors, within, .. } = Tally::of(&judged(&found.compared, Some(kind)));
        (share(within, factors), kind)
    };
    let shares: Vec<_> = kinds(&found.compared)
        .into_iter()
        .map(of_kind)
        .filter_map(|(share, kind)| Some((share?, kind)))
        .collect();
    let least = shares.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    vec![
        claim(
            "machines-factors",
            "factors within x1.5 of published ones (grade A) or x2 (grade B)",
            Bound::AtLeast(0.75),
            share(all.within, all.factors),
            &format!("{} of {} factors", all.within, all.factors),
        ),
        claim(
            "machines-order",
            "pairs of subjects in the measured order, of those 1.3x apart or more",
            Bound::AtLeast(0.85),
            share(all.agree, all.pairs),
            &format!("{} of {} pairs", all.agree, all.pairs),
        ),
        claim(
            "machines-kinds",
            "the kind with the smallest share of factors within their band",
            Bound::AtLeast(0.6),
            least.map(|(share, _)| *share),
            &least.map_or(String::new(), |(_, kind)| kind.to_string()),
        ),
    ]
}
