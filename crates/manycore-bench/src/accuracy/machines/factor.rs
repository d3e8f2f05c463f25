//! Factors, orders and knees. They compare published points with each other, and simulated points
//! with each other, so they need no absolute rate.

use std::collections::BTreeMap;

use super::Compared;

/// Two subjects differ if one is faster by this factor.
pub(super) const APART: f64 = 1.3;

/// A curve has its knee where it first reaches this share of its peak.
const KNEE: f64 = 0.9;

/// The kinds of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    /// The peak over one thread.
    Rise,
    /// The most threads over the peak.
    Fall,
    /// A subject over the first subject of the set, with the same number of threads.
    Subject,
}

impl Of {
    pub const ALL: [Self; 3] = [Self::Rise, Self::Fall, Self::Subject];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rise => "1 thread to peak",
            Self::Fall => "peak to most threads",
            Self::Subject => "subject over subject",
        }
    }
}

/// A factor, published and simulated.
#[derive(Clone, Debug)]
pub(super) struct Factor<'a> {
    pub of: Of,
    /// The point at which it ends.
    pub at: &'a Compared,
    pub published: f64,
    pub simulated: f64,
}

impl Factor<'_> {
    /// The ratio of the simulated and the published factor, inverted if it is less than 1.
    pub fn off(&self) -> f64 {
        let ratio = self.simulated / self.published;
        ratio.max(1.0 / ratio)
    }

    /// Whether the simulated factor is within the band of its set.
    pub fn is_within(&self) -> bool {
        self.off() <= self.at.band
    }
}

/// For each subject, case and machine: its points, by threads.
pub(super) fn curves(compared: &[Compared]) -> Vec<Vec<&Compared>> {
    let mut curves: BTreeMap<(usize, usize, usize, usize), Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        let point = &one.point;
        curves.entry((one.set, point.machine, point.case, point.subject)).or_default().push(one);
    }
    let mut curves: Vec<Vec<&Compared>> = curves.into_values().collect();
    curves.iter_mut().for_each(|curve| curve.sort_by_key(|one| one.point.threads));
    curves
}

/// The groups of points with the same case, machine and number of threads.
fn groups(compared: &[Compared]) -> Vec<Vec<&Compared>> {
    let mut groups: BTreeMap<(usize, usize, usize, u32), Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        let point = &one.point;
        groups.entry((one.set, point.machine, point.case, point.threads)).or_default().push(one);
    }
    let mut groups: Vec<Vec<&Compared>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_by_key(|one| one.point.subject));
    groups
}

/// All factors.
pub(super) fn factors(compared: &[Compared]) -> Vec<Factor<'_>> {
    let of_curves = curves(compared).into_iter().flat_map(|curve| of_curve(&curve));
    let of_groups = groups(compared).into_iter().flat_map(|group| of_group(&group));
    of_curves.chain(of_groups).collect()
}

/// The factors of a curve that begins with one thread.
fn of_curve<'a>(curve: &[&'a Compared]) -> Vec<Factor<'a>> {
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    if first.point.threads != 1 || curve.len() < 2 {
        return Vec::new();
    }
    let peak = |rate: fn(&Compared) -> f64| curve.iter().map(|one| rate(one)).fold(0.0, f64::max);
    let (published, simulated) = (peak(Compared::published), peak(Compared::simulated));
    let factor = |of, published, simulated| Factor { of, at: last, published, simulated };
    vec![
        factor(Of::Rise, published / first.published(), simulated / first.simulated()),
        factor(Of::Fall, last.published() / published, last.simulated() / simulated),
    ]
}

/// The factors of a group: each subject over the first one.
fn of_group<'a>(group: &[&'a Compared]) -> Vec<Factor<'a>> {
    let base = group[0];
    let over_base = |one: &&'a Compared| Factor {
        of: Of::Subject,
        at: one,
        published: one.published() / base.published(),
        simulated: one.simulated() / base.simulated(),
    };
    group[1..].iter().map(over_base).collect()
}

/// Two subjects. Published measurements show the first to be faster by [`APART`] or more.
pub(super) struct Pair<'a> {
    pub faster: &'a Compared,
    pub slower: &'a Compared,
}

impl Pair<'_> {
    /// Whether the simulation has them in the same order.
    pub fn agrees(&self) -> bool {
        self.faster.simulated() > self.slower.simulated()
    }
}

/// All pairs.
pub(super) fn pairs(compared: &[Compared]) -> Vec<Pair<'_>> {
    let mut pairs = Vec::new();
    for group in groups(compared) {
        for faster in &group {
            let apart = |slower: &&&Compared| faster.published() >= APART * slower.published();
            let of_faster = group.iter().filter(apart);
            pairs.extend(of_faster.map(|slower| Pair { faster, slower }));
        }
    }
    pairs
}

/// The fewest threads with which a curve is close to its peak.
pub(super) fn knee(curve: &[&Compared], rate: fn(&Compared) -> f64) -> u32 {
    let peak = curve.iter().map(|one| rate(one)).fold(0.0, f64::max);
    let near = curve.iter().find(|one| rate(one) >= KNEE * peak);
    near.map_or(0, |one| one.point.threads)
}

/// Whether the published and the simulated knee are the same point of the curve or neighbours.
pub(super) fn knees_agree(curve: &[&Compared]) -> bool {
    let place = |rate| {
        let knee = knee(curve, rate);
        curve.iter().position(|one| one.point.threads == knee).unwrap_or(0)
    };
    place(Compared::published).abs_diff(place(Compared::simulated)) <= 1
}

#[cfg(test)]
mod tests {
    use super::super::set::{Kind, Point};
    use super::*;

    fn compared(subject: usize, threads: u32, published: f64, simulated: f64) -> Compared {
        let point = Point { machine: 0, case: 0, subject, threads, value: published };
        Compared {
            set: 0,
            kind: Kind::Locks,
            band: 1.5,
            judged: true,
            point,
            published,
            simulated_value: simulated,
            simulated,
            sight: BTreeMap::new(),
        }
    }

    #[test]
    fn factors_orders_and_knees_by_hand() {
        let all = [
            compared(0, 1, 10.0, 1.0),
            compared(0, 4, 40.0, 4.0),
            compared(0, 8, 20.0, 1.0),
            compared(1, 8, 60.0, 2.0),
        ];
        let factors = factors(&all);
        let of = |of| factors.iter().find(|factor| factor.of == of).unwrap();
        assert_eq!((of(Of::Rise).published, of(Of::Rise).simulated), (4.0, 4.0));
        assert!(of(Of::Rise).is_within());
        assert_eq!((of(Of::Fall).off(), of(Of::Fall).is_within()), (2.0, false));
        // Published: 3 times as fast. Simulated: 2 times.
        assert_eq!(of(Of::Subject).off(), 1.5);
        assert_eq!(factors.len(), 3);
        let pairs = pairs(&all);
        assert_eq!((pairs.len(), pairs[0].agrees()), (1, true));
        let curve = &curves(&all)[0];
        assert_eq!((knee(curve, Compared::published), knees_agree(curve)), (4, true));
    }
}
