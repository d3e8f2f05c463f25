//! What the project promises about locks without contention.

use manycore_measure::{Bound, Claim, Judgement, Measurement, Mechanism, Metric, Parameter};

/// The locks that the promises name.
const LOCKS: [&str; 4] = ["futex", "innodb", "hybrid", "adaptive"];

/// The claims: name, subject in words, kind of build, metric and bound.
const PROMISES: [(&str, &str, &str, &str, f64); 3] = [
    ("time", "time of lock+unlock", "preload", "ratio", 1.10),
    ("instructions", "instructions of lock+unlock", "preload", "instructions_ratio", 1.3),
    ("statistics", "time of lock+unlock with statistics", "preload+statistics", "ratio", 2.5),
];

/// Judges the promises by the records of a run.
pub fn claims(measurements: &[Measurement]) -> Vec<Claim> {
    let of_lock = |lock| PROMISES.iter().map(move |promise| judge(measurements, lock, promise));
    LOCKS.into_iter().flat_map(of_lock).collect()
}

fn judge(
    measurements: &[Measurement],
    lock: &str,
    (id, text, way, metric, bound): &(&str, &str, &str, &str, f64),
) -> Claim {
    let is_meant = |m: &&Measurement| {
        m.mechanism == Mechanism::Lock(lock.into())
            && m.parameters.get("through") == Some(&Parameter::from(*way))
    };
    let found = measurements.iter().find(is_meant).and_then(|m| m.metrics.get(*metric));
    let interval = found.and_then(|found| interval(found, metric));
    let bound = Bound::AtMost(*bound);
    Claim {
        value: found.map(|found| found.value),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        verdict: interval.map_or(Judgement::Undecided, |interval| bound.judge(Some(interval))),
        note: if found.is_some() { String::new() } else { "not judged: not in this run".into() },
        ..Claim::open(
            format!("{lock}-uncontended-{id}"),
            format!("{lock} over glibc: {text}, {way}"),
            bound,
        )
    }
}

/// Counts are exact: their interval is the value.
fn interval(metric: &Metric, name: &str) -> Option<(f64, f64)> {
    if name == "instructions_ratio" {
        return Some((metric.value, metric.value));
    }
    metric.low.zip(metric.high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(lock: &str, way: &str, ratio: f64, instructions: f64) -> Measurement {
        let mut record = Measurement::new("uncontended", Mechanism::Lock(lock.into()), "ns", 10.0);
        record.parameters.insert("through".into(), way.into());
        let metric = |value: f64, spread: f64| Metric {
            value,
            unit: "ratio".into(),
            low: Some(value - spread),
            high: Some(value + spread),
        };
        record.metrics.insert("ratio".into(), metric(ratio, 0.05));
        record.metrics.insert("instructions_ratio".into(), metric(instructions, 0.0));
        record
    }

    #[test]
    fn records_decide() {
        let records = [
            record("futex", "native", 9.0, 9.0),
            record("futex", "preload", 1.0, 1.31),
            record("futex", "preload+statistics", 2.6, 9.0),
            record("innodb", "preload", 1.08, 1.0),
        ];
        let claims = claims(&records);
        let verdict = |id: &str| claims.iter().find(|claim| claim.id == id).unwrap().verdict;
        assert_eq!(verdict("futex-uncontended-time"), Judgement::Pass);
        assert_eq!(verdict("futex-uncontended-instructions"), Judgement::Fail);
        assert_eq!(verdict("futex-uncontended-statistics"), Judgement::Fail);
        assert_eq!(verdict("innodb-uncontended-time"), Judgement::Undecided);
        assert_eq!(verdict("adaptive-uncontended-time"), Judgement::Undecided);
    }
}
