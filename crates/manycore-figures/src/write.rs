//! The results as files: a page, pictures, and tables for programs.

use std::io;
use std::path::Path;

use manycore_measure::Measurement;

use crate::field::Field;
use crate::page::page;
use crate::picture;
use crate::run::Reproduction;

/// Dimensions that have a column.
const COLUMNS: [Field; 5] =
    [Field::Series, Field::Threads, Field::Cpus, Field::Update, Field::Zipf];

/// Writes `index.html`, and for each figure its pictures and `ID.csv`, into an existing directory.
pub fn write(found: &[Reproduction], directory: &Path) -> io::Result<()> {
    for found in found {
        let file = |name: &str, ending: &str| directory.join(format!("{name}.{ending}"));
        table(&found.measurements, std::fs::File::create(file(&found.figure.id, "csv"))?)?;
        for (name, picture) in picture::of(found) {
            std::fs::write(file(&name, "svg"), picture.svg())?;
        }
    }
    std::fs::write(directory.join("index.html"), page(found))
}

/// A line for each record.
fn table(records: &[Measurement], to: impl io::Write) -> io::Result<()> {
    let mut metrics: Vec<&String> = records.iter().flat_map(|r| r.metrics.keys()).collect();
    metrics.sort();
    metrics.dedup();
    let mut csv = csv::Writer::from_writer(to);
    let fixed = ["value", "low", "high", "unit", "provenance", "machine"];
    let heading = COLUMNS.iter().map(|field| field.name()).chain(fixed);
    csv.write_record(heading.chain(metrics.iter().map(|name| name.as_str())))?;
    let number = |number: Option<f64>| number.map_or(String::new(), |number| number.to_string());
    for record in records {
        let places =
            COLUMNS.iter().map(|field| field.of(record).map_or(String::new(), |p| p.to_string()));
        let fixed = [
            record.value.to_string(),
            number(record.low),
            number(record.high),
            record.unit.clone(),
            "simulated".to_owned(),
            record.machine.clone(),
        ];
        let of_metric =
            |name: &&String| number(record.metrics.get(*name).map(|metric| metric.value));
        csv.write_record(places.chain(fixed).chain(metrics.iter().map(of_metric)))?;
    }
    csv.flush()
}
