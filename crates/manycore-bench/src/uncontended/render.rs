//! The results of `bench uncontended` for a person.

use manycore_measure::{
    Cell, Claim, Column, Measurement, Table, duration, interval, ratio, significant,
};

/// A table with a row for each lock and way, and the claims if there are any.
pub fn render(measurements: &[Measurement], claims: &[Claim]) -> String {
    let numbers = ["lock+unlock", "of glibc", "95 %", "instructions", "of glibc"];
    let columns = [Column::words("lock"), Column::words("through")];
    let mut table = Table::new(columns.into_iter().chain(numbers.map(Column::number)));
    for measurement in measurements {
        let metric = |name: &str| measurement.metrics.get(name);
        let ratio_of = |name: &str| metric(name).map_or(String::new(), |m| ratio(m.value));
        table.row([
            Cell::from(measurement.mechanism.name()),
            measurement.name("through").unwrap_or_default().into(),
            duration(measurement.value).into(),
            ratio_of("ratio").into(),
            metric("ratio").map_or(String::new(), |m| interval(m.low, m.high)).into(),
            metric("instructions").map_or(String::new(), |m| significant(m.value, 3)).into(),
            ratio_of("instructions_ratio").into(),
        ]);
    }
    match claims {
        [] => format!("{table}\n"),
        claims => format!("{table}\n\n{}\n", Claim::table(claims)),
    }
}
