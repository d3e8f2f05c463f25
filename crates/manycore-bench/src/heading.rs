//! What is printed under one heading.

use manycore_report::Measurement;

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
