//! The claims.

use manycore_measure::{Bound, Claim};

use super::view::View;
use crate::campaign::BASE;
use crate::failure::Failure;
use crate::unjudged::Part;
use crate::wait_pool::Pooled;
use manycore_measure::paired::{Better, Protocol, Unusable};

/// The lock that should be nearly as good as the best of the others at each point.
const LEARNING: &str = "adaptive";

/// Judges all claims about one way.
pub(super) fn judge(view: &View) -> Result<Vec<Claim>, Failure> {
    let mut claims = against_the_best(view)?;
    claims.push(waits(view)?);
    claims.push(fairness(view)?);
    for lock in ["hybrid", "futex", "mcs-bypass"] {
        claims.push(holds_under_load(view, lock)?);
    }
    for section in view.sections() {
        claims.push(peak(view, &section)?);
        claims.push(keeps_its_peak(view, &section)?);
    }
    Ok(claims)
}

fn compare(base: &[f64], candidate: &[f64], confidence: f64) -> Result<Pooled, Unusable> {
    let protocol = Protocol { confidence, ..Protocol::new(Better::Higher) };
    protocol.compare(base, candidate).map(Pooled::from)
}

/// Its throughput over that of the best other lock: on average, and at each point.
fn against_the_best(view: &View) -> Result<Vec<Claim>, Failure> {
    let open = |id: &str, text: &str, bound| {
        view.open(
            format!("{LEARNING}-{id}"),
            format!("{LEARNING} over the best other lock, {text}"),
            Bound::AtLeast(bound),
        )
    };
    let mean = open("mean", "geometric mean", 0.97);
    let least = open("least", "every point", 0.85);
    let Some(lock) = view.lock(LEARNING) else {
        let missing = view.absent(LEARNING);
        return Ok(vec![mean.missing(&missing), least.missing(&missing)]);
    };
    let points = view.points().len();
    let pairs: Vec<Rivals> = (0..points).map(|point| Rivals::at(view, point, lock)).collect();
    let part = |(point, pair): (usize, &Rivals)| {
        let place = format!("{}: {}", view.label(point), pair.names);
        Part::new(place, points, |confidence| compare(&pair.best, &pair.own, confidence))
    };
    let parts = pairs.iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
    // One mean for each round, so that points that are disturbed together do not count as
    // independent.
    let rounds = pairs.first().map_or(0, |pair| pair.own.len());
    let log_mean = |round: usize| {
        let logs = pairs.iter().map(|pair| (pair.own[round] / pair.best[round]).ln());
        (logs.sum::<f64>() / points as f64).exp()
    };
    let means: Vec<f64> = (0..rounds).map(log_mean).collect();
    let mean = mean.once(compare(&vec![1.0; rounds], &means, 0.95)?, format!("{points} points"));
    Ok(vec![mean, least.everywhere(&parts)])
}

/// A lock's throughput and that of the best other lock at a point, round by round.
///
/// A lock that is chosen because it is best in some rounds looks better in those rounds than it is.
/// So the best lock of the even rounds is compared in the odd rounds, and the best of the odd
/// rounds in the even ones.
struct Rivals {
    own: Vec<f64>,
    best: Vec<f64>,
    names: String,
}

impl Rivals {
    fn at(view: &View, point: usize, lock: usize) -> Self {
        let best_of = |parity: usize| {
            let median = |other: &usize| view.median(point, *other, |round| round % 2 == parity);
            let others = view.locks().filter(|other| *other != lock);
            others.max_by(|a, b| median(a).total_cmp(&median(b))).unwrap_or(BASE)
        };
        let (even, odd) = (best_of(0), best_of(1));
        let (of_even, of_odd) = (view.throughput(point, even), view.throughput(point, odd));
        let best =
            |round: usize| if round.is_multiple_of(2) { of_odd[round] } else { of_even[round] };
        let own = view.throughput(point, lock);
        let best = (0..own.len()).map(best).collect();
        let names = match (view.name_of(even), view.name_of(odd)) {
            (one, other) if one == other => one.to_string(),
            (one, other) => format!("{one} and {other}"),
        };
        Self { own, best, names }
    }
}

/// The 99.9th percentile of waits at each point with more than one thread. A single thread never
/// waits, so its percentile shows only the clock and interrupts.
fn waits(view: &View) -> Result<Claim, Failure> {
    let open = view.open(
        format!("{LEARNING}-wait"),
        format!("{LEARNING}'s p99.9 wait over glibc's, every point with threads that wait"),
        Bound::AtMost(2.0),
    );
    let Some(lock) = view.lock(LEARNING) else { return Ok(open.missing(&view.absent(LEARNING))) };
    let waited = |point: &usize| view.points()[*point].threads > 1;
    let points: Vec<usize> = (0..view.points().len()).filter(waited).collect();
    let part = |point: &usize| {
        let ratio =
            |confidence| view.wait_ratio(*point, lock, confidence).ok_or(Unusable::Count(0));
        Part::new(view.label(*point), points.len(), ratio)
    };
    Ok(open.everywhere(&points.iter().map(part).collect::<Result<Vec<_>, _>>()?))
}

/// The number of sections of the busiest thread over that of the least busy one, at each point.
fn fairness(view: &View) -> Result<Claim, Failure> {
    let open = view.open(
        format!("{LEARNING}-fairness"),
        format!("{LEARNING}'s max/min of threads over glibc's, every point"),
        Bound::AtMost(2.0),
    );
    let Some(lock) = view.lock(LEARNING) else { return Ok(open.missing(&view.absent(LEARNING))) };
    let points = view.points().len();
    let part = |point| {
        let ratio = |confidence| view.fairness_ratio(point, lock, confidence).map(Pooled::from);
        Part::new(view.label(point), points, ratio)
    };
    Ok(open.everywhere(&(0..points).map(part).collect::<Result<Vec<_>, _>>()?))
}

/// At least half of glibc's throughput with many more threads than CPUs.
fn holds_under_load(view: &View, lock: &str) -> Result<Claim, Failure> {
    let open = view.open(
        format!("{lock}-under-load"),
        format!("{lock} over glibc at 8 and 32 threads"),
        Bound::AtLeast(0.5),
    );
    let Some(subject) = view.lock(lock) else { return Ok(open.missing(&view.absent(lock))) };
    let loaded = |point: &usize| [8, 32].contains(&view.points()[*point].threads);
    let points: Vec<usize> = (0..view.points().len()).filter(loaded).collect();
    let part = |point: &usize| {
        let (base, own) = (view.throughput(*point, BASE), view.throughput(*point, subject));
        Part::new(view.label(*point), points.len(), |confidence| compare(&base, &own, confidence))
    };
    Ok(open.everywhere(&points.iter().map(part).collect::<Result<Vec<_>, _>>()?))
}

/// A claim of the original project: the hybrid lock is as fast as the spinning one where spinning
/// is best.
fn peak(view: &View, section: &[usize]) -> Result<Claim, Failure> {
    let (length, _) = view.section(section);
    let open = view.open(
        format!("hybrid-peak-{length}").replace(' ', ""),
        format!("hybrid's peak over innodb's, sections of {length}"),
        Bound::AtLeast(0.95),
    );
    let (Some(hybrid), Some(innodb)) = (view.lock("hybrid"), view.lock("innodb")) else {
        return Ok(open.missing(&view.absent("hybrid or innodb")));
    };
    let (own, base) = (view.peak(section, hybrid), view.peak(section, innodb));
    let threads = |point: usize| view.points()[point].threads;
    let note = format!("at {} threads, innodb at {}", threads(own), threads(base));
    let found = compare(&view.throughput(base, innodb), &view.throughput(own, hybrid), 0.95)?;
    Ok(open.once(found, note))
}

/// A claim of the original project: with the most threads, the hybrid lock keeps as much of its
/// peak as the sleeping one does.
fn keeps_its_peak(view: &View, section: &[usize]) -> Result<Claim, Failure> {
    let (length, most) = view.section(section);
    let threads = view.points()[most].threads;
    let open = view.open(
        format!("hybrid-keeps-peak-{length}").replace(' ', ""),
        format!(
            "hybrid's share of its peak at {threads} threads over sleep's, sections of {length}"
        ),
        Bound::AtLeast(0.9),
    );
    let (Some(hybrid), Some(sleep)) = (view.lock("hybrid"), view.lock("sleep")) else {
        return Ok(open.missing(&view.absent("hybrid or sleep")));
    };
    let kept = |lock: usize| {
        let (last, peak) =
            (view.throughput(most, lock), view.throughput(view.peak(section, lock), lock));
        last.iter().zip(peak).map(|(last, peak)| last / peak).collect::<Vec<f64>>()
    };
    let (own, base) = (kept(hybrid), kept(sleep));
    let middle = |values: &[f64]| {
        manycore_measure::paired::Median::of(values).map_or(f64::NAN, |median| median.value)
    };
    let note = format!("{:.2} of its peak, sleep {:.2}", middle(&own), middle(&base));
    Ok(open.once(compare(&base, &own, 0.95)?, note))
}

#[cfg(test)]
mod tests {
    use manycore_measure::Judgement;

    use super::*;
    use crate::lock::Point;
    use crate::lock::campaign::Samples;
    use crate::slice::Slice;
    use crate::waits::Waits;
    use crate::work::Length;
    use crate::worker::{Subject, Through};

    const ROUNDS: usize = 20;
    const THREADS: [u32; 4] = [1, 8, 32, 64];

    /// A lock's throughput with this many threads, in sections a second.
    type Speed = fn(u32) -> f64;

    /// A made-up run, with noise of 2 %.
    fn samples(locks: &[(&str, Speed)]) -> Samples {
        let length = Length::fixed(50.0);
        let point = |threads| Point {
            threads,
            locks: 1,
            section: length,
            outside: length,
            reads: 0.0,
            data: 1,
        };
        let mut random = fastrand::Rng::with_seed(1);
        let mut slice = |threads: u32, speed: Speed| {
            let mut waits = Waits::default();
            waits.add((1e12 / speed(threads)) as u64, 1_000);
            let count = speed(threads) / f64::from(threads) * (1.0 + 0.02 * random.f64());
            Slice { counts: vec![count as u64; threads as usize], elapsed_ns: 1e9, waits, stuck: 0 }
        };
        let mut of_lock = |threads, speed| (0..ROUNDS).map(|_| slice(threads, speed)).collect();
        let slices = THREADS
            .map(|threads| locks.iter().map(|(_, speed)| of_lock(threads, *speed)).collect());
        let subject = |(lock, _): &(&str, Speed)| Subject {
            lock: (*lock).into(),
            through: Through::Native,
            shared: false,
        };
        let subjects = locks.iter().map(subject).collect();
        Samples::of(THREADS.map(point).to_vec(), subjects, slices.to_vec())
    }

    fn claim(locks: &[(&str, Speed)], id: &str) -> Claim {
        let samples = samples(locks);
        let mut claims = judge(&View::new(&samples, Through::Native)).unwrap().into_iter();
        claims.find(|claim| claim.id == id).unwrap_or_else(|| panic!("no claim {id}"))
    }

    const GLIBC: (&str, Speed) = ("glibc", |_| 1e6);

    #[test]
    fn as_good_as_the_best_passes() {
        let locks = [GLIBC, ("futex", |_| 0.9e6), ("adaptive", |_| 1e6)];
        for id in ["mean", "least", "wait", "fairness"] {
            let claim = claim(&locks, &format!("adaptive-{id}-native"));
            assert_eq!(claim.verdict, Judgement::Pass, "{claim:?}");
        }
    }

    #[test]
    fn one_bad_point_fails_the_claim_about_every_point_only() {
        let slow_at_8: Speed = |threads| if threads == 8 { 0.4e6 } else { 1.2e6 };
        let locks = [GLIBC, ("adaptive", slow_at_8)];
        let least = claim(&locks, "adaptive-least-native");
        assert_eq!(
            (least.verdict, least.note.as_str()),
            (Judgement::Fail, "8 threads, 50.0 ns: glibc")
        );
        assert!((least.value.unwrap() - 0.4).abs() < 0.02);
        assert_eq!(claim(&locks, "adaptive-wait-native").verdict, Judgement::Fail);
        let mean = claim(&locks, "adaptive-mean-native");
        assert_eq!(mean.verdict, Judgement::Fail, "(0.4 * 1.2^3)^(1/4) is 0.91: {mean:?}");
    }

    #[test]
    fn locks_under_load_are_held_to_half_of_glibc() {
        let collapses: Speed = |threads| if threads > 8 { 0.3e6 } else { 2e6 };
        let locks = [GLIBC, ("futex", |_| 0.6e6), ("hybrid", collapses)];
        assert_eq!(claim(&locks, "futex-under-load-native").verdict, Judgement::Pass);
        assert_eq!(claim(&locks, "hybrid-under-load-native").verdict, Judgement::Fail);
        let missing = claim(&locks, "mcs-bypass-under-load-native");
        assert_eq!((missing.verdict, missing.value), (Judgement::Undecided, None));
        assert_eq!(missing.note, "not judged: mcs-bypass is not in this run");
    }

    #[test]
    fn peaks_are_compared_wherever_they_are() {
        let early: Speed = |threads| if threads == 1 { 2e6 } else { 0.5e6 };
        let late: Speed = |threads| if threads == 8 { 1.98e6 } else { 1e6 };
        let locks = [GLIBC, ("innodb", early), ("hybrid", late), ("sleep", late)];
        let peak = claim(&locks, "hybrid-peak-50.0ns-native");
        assert_eq!(
            (peak.verdict, peak.note.as_str()),
            (Judgement::Pass, "at 8 threads, innodb at 1")
        );
        let kept = claim(&locks, "hybrid-keeps-peak-50.0ns-native");
        assert_eq!(kept.verdict, Judgement::Pass, "{kept:?}");
        assert!(kept.text.contains("at 64 threads"));
    }
}
