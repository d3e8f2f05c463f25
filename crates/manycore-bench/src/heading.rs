//! What is printed under one heading.

use manycore_measure::{Measurement, significant};

/// Measurements by their headings, both in the order in which they come.
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

/// Below a table: a line for each mechanism that has counted something.
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
