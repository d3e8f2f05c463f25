//! The common parts of tables of measurements: headings, verdicts, and lines below.

use manycore_measure::paired::{Better, Protocol, Verdict};
use manycore_measure::{Measurement, Tone, significant};

/// Measurements grouped by their headings, both in their original order.
pub(crate) fn by_heading(
    measurements: &[Measurement],
    heading: impl Fn(&Measurement) -> String,
) -> Vec<(String, Vec<&Measurement>)> {
    let mut groups: Vec<(String, Vec<&Measurement>)> = Vec::new();
    for measurement in measurements {
        let heading = heading(measurement);
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, members)) => members.push(measurement),
            None => groups.push((heading, vec![measurement])),
        }
    }
    groups
}

/// A line below a table for each mechanism that has counters.
pub(crate) fn counts(members: &[&Measurement]) -> String {
    let line = |member: &&Measurement| {
        let counted = member.metrics.iter().filter_map(|(name, metric)| {
            let name = name.strip_prefix("count_")?.replace('_', " ");
            Some(format!("{name} {}", significant(metric.value, 3)))
        });
        let counted: Vec<_> = counted.collect();
        let name = member.mechanism.name();
        (!counted.is_empty())
            .then(|| format!("{name}, for each operation: {}\n", counted.join(", ")))
    };
    members.iter().filter_map(line).collect()
}

/// A line about a machine that was too busy for credible results; empty if it was not.
pub(crate) fn warning(measurements: &[Measurement]) -> String {
    let mut others = measurements.iter().filter_map(|measurement| measurement.number("others_cpu"));
    others.find(|percent| *percent > TOLERATED).map_or(String::new(), |percent| {
        format!(
            "\nOther programs used {percent:.0} % of the CPUs meanwhile: expect wide intervals.\n"
        )
    })
}

/// The share of the CPUs that other programs may use without a warning, in percent.
const TOLERATED: f64 = 5.0;

/// The verdict from an interval of ratios, and its style.
pub(crate) fn judge(interval: Option<(f64, f64)>) -> (String, Tone) {
    let verdict = Protocol::new(Better::Higher).judge(interval);
    let tone = match verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifference | Verdict::Undecided => Tone::Faint,
    };
    (verdict.to_string(), tone)
}
