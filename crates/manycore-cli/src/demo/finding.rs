//! The demonstration's result, in three sentences: what it costs, whether another lock helps, and
//! what a repair brings.

use manycore_measure::paired::Verdict;
use manycore_measure::{duration, interval, ratio};
use manycore_profile::profile::Profile;

use crate::demo::trials::Tried;

/// The three sentences.
pub fn sentences(profile: &Profile, tried: &[Tried]) -> [String; 3] {
    let (repaired, locks): (Vec<&Tried>, Vec<&Tried>) =
        tried.iter().filter(|one| one.comparison.is_some()).partition(|one| one.candidate.repaired);
    [profile.finding.clone(), of_locks(&locks), of_repair(&repaired, profile)]
}

/// Whether one of the locks is better than glibc's.
fn of_locks(locks: &[&Tried]) -> String {
    let with = |verdict| -> Vec<&Tried> {
        locks.iter().copied().filter(|one| verdict_of(one) == verdict).collect()
    };
    let mut faster = with(Verdict::Faster);
    faster.sort_by(|a, b| ratio_of(b).total_cmp(&ratio_of(a)));
    let seen = |of: &[&Tried]| {
        let each = of.iter().map(|one| format!("{} {}", one.candidate, measured(one)));
        each.collect::<Vec<_>>().join(", ")
    };
    match &faster[..] {
        [best, ..] => format!(
            "Another lock helps: under `{}` the server answers {} as many requests as under glibc's own ({}).",
            best.candidate,
            ratio(ratio_of(best)),
            seen(locks)
        ),
        [] if with(Verdict::Undecided).is_empty() => format!(
            "No other lock helps: against glibc's own the server answers as many requests or fewer ({}).",
            seen(locks)
        ),
        [] => format!(
            "Whether another lock helps cannot be told from runs that differ as these do ({}).",
            seen(locks)
        ),
    }
}

/// What it brings to hold the lock for less.
fn of_repair(repaired: &[&Tried], profile: &Profile) -> String {
    let Some(repaired) = repaired.first() else { return String::new() };
    let held = profile.locks.first().and_then(|lock| lock.hold.mean_ns);
    let held =
        held.map(|ns| format!(" (it was held for {} at a time)", duration(ns as f64).trim_end()));
    let change = format!(
        "with the checks done after the unlock{}, the server answers {} as many",
        held.unwrap_or_default(),
        measured(repaired)
    );
    match verdict_of(repaired) {
        Verdict::Faster => format!("Holding the lock for less helps: {change}."),
        Verdict::Slower => format!("Holding the lock for less does not pay here: {change}."),
        Verdict::NoDifference => {
            format!("Holding the lock for less makes no difference here: {change}.")
        }
        Verdict::Undecided => {
            format!("Whether holding the lock for less helps cannot be told: {change}.")
        }
    }
}

fn verdict_of(one: &Tried) -> Verdict {
    one.comparison.map_or(Verdict::NoDifference, |comparison| comparison.verdict)
}

fn ratio_of(one: &Tried) -> f64 {
    one.comparison.map_or(1.0, |comparison| comparison.ratio)
}

/// The ratio with its interval.
fn measured(one: &Tried) -> String {
    let (low, high) = one.comparison.and_then(|comparison| comparison.interval).unzip();
    format!("{} {}", ratio(ratio_of(one)), interval(low, high)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use manycore_measure::paired::{Comparison, Median};

    use super::*;
    use crate::demo::trials::Candidate;

    fn tried(lock: &str, repaired: bool, result: Option<(f64, Verdict)>) -> Tried {
        Tried {
            candidate: Candidate { lock: lock.into(), repaired },
            rate: Median::of(&[1000.0]).unwrap(),
            runs: 12,
            comparison: result.map(|(ratio, verdict)| Comparison {
                ratio,
                interval: Some((ratio - 0.1, ratio + 0.1)),
                pairs: 12,
                verdict,
            }),
        }
    }

    fn found(locks: &[(f64, Verdict)], repair: (f64, Verdict)) -> [String; 2] {
        let names = ["futex", "hybrid"];
        let mut all = vec![tried("glibc", false, None)];
        all.extend(names.iter().zip(locks).map(|(name, result)| tried(name, false, Some(*result))));
        all.push(tried("glibc", true, Some(repair)));
        let profile = serde_json::from_str::<Profile>(include_str!(
            "../../../manycore-profile/src/profile/example.json"
        ))
        .unwrap();
        let [first, second, third] = sentences(&profile, &all);
        assert_eq!(first, profile.finding);
        [second, third]
    }

    #[test]
    fn sentences_say_what_was_measured() {
        let [locks, repair] =
            found(&[(1.1, Verdict::NoDifference), (1.3, Verdict::Faster)], (1.7, Verdict::Faster));
        assert!(
            locks.starts_with("Another lock helps: under `hybrid` the server answers 1.30x"),
            "{locks}"
        );
        assert!(locks.contains("futex 1.10x [1.00, 1.20], hybrid 1.30x [1.20, 1.40]"), "{locks}");
        assert!(repair.starts_with("Holding the lock for less helps"), "{repair}");
        assert!(
            repair.contains(
                "(it was held for 1.64 us at a time), the server answers 1.70x [1.60, 1.80] as many"
            ),
            "{repair}"
        );

        let [locks, repair] = found(
            &[(1.0, Verdict::NoDifference), (0.7, Verdict::Slower)],
            (1.0, Verdict::NoDifference),
        );
        assert!(locks.starts_with("No other lock helps"), "{locks}");
        assert!(repair.contains("makes no difference"), "{repair}");

        let undecided = (1.0, Verdict::Undecided);
        let [locks, repair] = found(&[undecided, (0.5, Verdict::Slower)], undecided);
        assert!(
            locks.contains("cannot be told") && repair.contains("cannot be told"),
            "{locks} {repair}"
        );
        let [_, repair] = found(&[undecided], (0.5, Verdict::Slower));
        assert!(repair.contains("does not pay"), "{repair}");
    }
}
