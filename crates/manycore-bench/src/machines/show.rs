//! All that there is to say about one machine.

use std::collections::BTreeMap;

use manycore_measure::{Cell, Column, Table, Tone};
use manycore_sim::model::{Constant, Model, Origin, Provenance};
use serde_json::{Value, json};

/// A table of the constants with their provenance, and the sources.
pub fn as_text(model: &Model) -> String {
    let mut table = Table::new([
        Column::words("constant"),
        Column::number("value"),
        Column::number("low"),
        Column::number("high"),
        Column::words("unit"),
        Column::words("known"),
        Column::words("from"),
    ]);
    for constant in &model.constants {
        table.row(row(constant));
    }
    let sources: String =
        model.sources.iter().map(|(key, source)| format!("  {key}: {source}\n")).collect();
    let sources = if sources.is_empty() { sources } else { format!("\nSources:\n{sources}") };
    format!(
        "{}: {}\n{}\n\n{table}\n\nDistances between sockets ({}):\n{}\n{}\n{sources}",
        model.name,
        model.summary,
        model.shape(),
        origin_of(&model.distance_origin),
        distances(model),
        tally(model),
    )
}

fn row(constant: &Constant) -> [Cell; 7] {
    let tone = match constant.provenance {
        Provenance::Assumed | Provenance::Unverified => Tone::Faint,
        _ => Tone::Plain,
    };
    let origin = Origin {
        provenance: constant.provenance,
        from: constant.from.clone(),
        note: constant.note.clone(),
    };
    [
        constant.name().into(),
        constant.show(constant.value).into(),
        constant.show(constant.low).into(),
        constant.show(constant.high).into(),
        constant.field.unit.name().into(),
        Cell::new(constant.provenance.name(), tone),
        Cell::new(explained(&origin), tone),
    ]
}

fn origin_of(origin: &Origin) -> String {
    format!("{}: {}", origin.provenance, explained(origin))
}

fn explained(origin: &Origin) -> String {
    [origin.from.as_deref(), origin.note.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ")
}

/// A row of digits for each socket.
fn distances(model: &Model) -> String {
    let row = |row: &Vec<u8>| {
        format!("  {}\n", row.iter().map(u8::to_string).collect::<Vec<_>>().join(" "))
    };
    model.distance.iter().map(row).collect()
}

/// How many constants are known how.
fn tally(model: &Model) -> String {
    let mut counts: BTreeMap<Provenance, usize> = BTreeMap::new();
    for constant in &model.constants {
        *counts.entry(constant.provenance).or_default() += 1;
    }
    let parts: Vec<String> =
        counts.iter().map(|(provenance, count)| format!("{count} {provenance}")).collect();
    format!("{} constants: {}", model.constants.len(), parts.join(", "))
}

/// The same for programs.
pub fn as_json(model: &Model) -> Value {
    let constant = |constant: &Constant| {
        let number = |number: f64| match constant.show(number).parse::<f64>() {
            Ok(_) => json!(number),
            Err(_) => json!(constant.show(number)),
        };
        json!({
            "name": constant.name(),
            "what": constant.field.what,
            "unit": constant.field.unit.name(),
            "value": number(constant.value),
            "low": number(constant.low),
            "high": number(constant.high),
            "provenance": constant.provenance.name(),
            "from": constant.from,
            "note": constant.note,
        })
    };
    json!({
        "schema": 1,
        "name": model.name,
        "summary": model.summary,
        "cpus": model.machine().topology.cpus(),
        "distance": model.distance,
        "sources": model.sources,
        "constants": model.constants.iter().map(constant).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::find;

    #[test]
    fn every_constant_is_shown_with_its_origin() {
        for name in manycore_sim::model::names() {
            let model = find(name).unwrap();
            let text = as_text(&model);
            for constant in &model.constants {
                assert!(text.contains(&constant.name()), "{name}: {}", constant.name());
            }
            assert!(model.sources.values().all(|source| text.contains(source)), "{name}");
            let json = as_json(&model);
            assert_eq!(json["constants"].as_array().unwrap().len(), model.constants.len());
        }
    }

    #[test]
    fn choices_keep_their_names() {
        let json = as_json(&find("graviton-64").unwrap());
        let constants = json["constants"].as_array().unwrap();
        let combining = constants.iter().find(|c| c["name"] == "directory.combining").unwrap();
        assert_eq!((&combining["value"], &combining["low"]), (&json!("socket"), &json!("none")));
    }
}
