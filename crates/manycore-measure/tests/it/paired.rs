//! The protocol's promises, checked by simulation: noise of several shapes, seeded.

use fastrand::Rng;
use manycore_measure::paired::{Better, Comparison, Protocol, Unusable, Verdict};
use proptest::prelude::*;

const TRIALS: u32 = 2_000;
const PAIRS: usize = 31;

/// A factor by which a run errs.
type Noise = fn(&mut Rng) -> f64;

/// Twelve uniform numbers: normal for all that matters here.
fn normal(random: &mut Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// 10 % about the true value.
fn even(random: &mut Rng) -> f64 {
    (0.1 * normal(random)).exp()
}

/// One run in ten is disturbed and takes up to ten times as long: a shared machine.
fn disturbed(random: &mut Rng) -> f64 {
    let outlier = if random.u8(..10) == 0 { 1.0 + 9.0 * random.f64() } else { 1.0 };
    outlier * (0.05 * normal(random)).exp()
}

/// Two speeds, as with frequency steps or a neighbour that comes and goes.
fn two_speeds(random: &mut Rng) -> f64 {
    let speed = if random.bool() { 1.0 } else { 1.3 };
    speed + 0.02 * random.f64()
}

fn trial(random: &mut Rng, noise: Noise, ratio: f64) -> Comparison {
    let mut side = |scale: f64| (0..PAIRS).map(|_| scale * noise(random)).collect::<Vec<_>>();
    let (base, candidate) = (side(100.0), side(100.0 * ratio));
    Protocol::new(Better::Lower).compare(&base, &candidate).unwrap()
}

/// The share of trials with this outcome.
fn share(noise: Noise, ratio: f64, outcome: impl Fn(&Comparison) -> bool) -> f64 {
    let mut random = Rng::with_seed(7);
    let hits = (0..TRIALS).filter(|_| outcome(&trial(&mut random, noise, ratio))).count();
    hits as f64 / f64::from(TRIALS)
}

#[test]
fn no_difference_is_called_so() {
    let found = share(even, 1.0, |c| c.verdict == Verdict::NoDifference);
    assert!(found >= 0.95, "{found}");
}

#[test]
fn no_difference_is_not_called_one_whatever_the_noise() {
    for noise in [even as Noise, disturbed, two_speeds] {
        let wrong = share(noise, 1.0, |c| matches!(c.verdict, Verdict::Faster | Verdict::Slower));
        // 5 % by construction; three standard deviations of this simulation on top.
        assert!(wrong <= 0.065, "{wrong}");
    }
}

#[test]
fn a_fifth_is_found() {
    let slower = share(even, 1.2, |c| c.verdict == Verdict::Slower);
    let faster = share(even, 1.0 / 1.2, |c| c.verdict == Verdict::Faster);
    assert!(slower >= 0.99 && faster >= 0.99, "{slower} {faster}");
}

#[test]
fn the_interval_holds_the_true_ratio() {
    for noise in [even as Noise, disturbed, two_speeds] {
        let held =
            share(noise, 3.0, |c| c.interval.is_some_and(|(low, high)| low <= 3.0 && 3.0 <= high));
        assert!(held >= 0.935, "{held}");
    }
}

#[test]
fn with_many_candidates_all_intervals_hold_together() {
    let mut random = Rng::with_seed(3);
    let false_alarms = (0..500)
        .filter(|_| {
            let mut side = || (0..PAIRS).map(|_| even(&mut random)).collect::<Vec<_>>();
            let sides: Vec<_> = (0..13).map(|_| side()).collect();
            let candidates: Vec<&[f64]> = sides[1..].iter().map(Vec::as_slice).collect();
            let found = Protocol::new(Better::Lower).compare_all(&sides[0], &candidates).unwrap();
            found.iter().any(|c| matches!(c.verdict, Verdict::Faster | Verdict::Slower))
        })
        .count();
    assert!(
        false_alarms <= 40,
        "{false_alarms} of 500 comparisons of twelve equals found a difference"
    );
}

#[test]
fn five_pairs_are_too_few_however_clear() {
    let found = Protocol::new(Better::Higher).compare(&[1.0; 5], &[9.0; 5]).unwrap();
    assert_eq!(
        (found.ratio.round(), found.interval, found.verdict),
        (9.0, None, Verdict::Undecided)
    );
    let found = Protocol::new(Better::Higher).compare(&[1.0; 6], &[9.0; 6]).unwrap();
    assert_eq!(found.verdict, Verdict::Faster);
}

#[test]
fn wide_intervals_are_undecided() {
    let base = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let found =
        Protocol::new(Better::Higher).compare(&base, &[0.5, 0.7, 1.0, 1.1, 1.4, 2.0]).unwrap();
    assert_eq!(found.verdict, Verdict::Undecided);
}

#[test]
fn what_has_no_ratio_is_refused() {
    let compare = |a: &[f64], b: &[f64]| Protocol::new(Better::Higher).compare(a, b).unwrap_err();
    assert_eq!(compare(&[1.0], &[1.0, 2.0]), Unusable::NotPaired(1, 2));
    assert_eq!(compare(&[], &[]), Unusable::Count(0));
    assert_eq!(compare(&[1.0], &[0.0]), Unusable::NotPositive(0.0));
    assert!(matches!(compare(&[f64::NAN], &[1.0]), Unusable::NotPositive(_)));
    assert_eq!(compare(&[1.0; 1001], &[1.0; 1001]), Unusable::Count(1001));
}

fn values() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop::collection::vec((0.1..10.0, 0.1..10.0), 1..60)
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

proptest! {
    #[test]
    fn exchanging_the_sides_inverts_the_ratio(pairs in values()) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let protocol = Protocol::new(Better::Higher);
        let (there, back) = (protocol.compare(&a, &b).unwrap(), protocol.compare(&b, &a).unwrap());
        prop_assert!(close(there.ratio, 1.0 / back.ratio));
        if let (Some((low, high)), Some((low_back, high_back))) = (there.interval, back.interval) {
            prop_assert!(close(low, 1.0 / high_back) && close(high, 1.0 / low_back));
            prop_assert!(low <= there.ratio && there.ratio <= high);
        }
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(pairs in values(), seed: u64) {
        let mut shuffled = pairs.clone();
        Rng::with_seed(seed).shuffle(&mut shuffled);
        let compare = |pairs: Vec<(f64, f64)>| {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            Protocol::new(Better::Higher).compare(&a, &b).unwrap()
        };
        prop_assert_eq!(compare(pairs), compare(shuffled));
    }

    #[test]
    fn a_factor_on_one_side_is_a_factor_on_the_ratio(pairs in values(), factor in 0.01..100.0) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scaled: Vec<f64> = b.iter().map(|value| value * factor).collect();
        let protocol = Protocol::new(Better::Higher);
        let (plain, times) = (protocol.compare(&a, &b).unwrap(), protocol.compare(&a, &scaled).unwrap());
        prop_assert!(close(times.ratio, plain.ratio * factor));
    }
}
