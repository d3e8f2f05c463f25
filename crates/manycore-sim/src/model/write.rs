//! Writing the file format.

use std::fmt::Write;

use toml::Value;

use super::constant::{Constant, Origin};
use super::field::Unit;
use super::{Model, parse};

pub(super) fn write(model: &Model) -> String {
    let mut text = format!(
        "schema = {}\nname = {}\nsummary = {}\n",
        parse::SCHEMA,
        quoted(&model.name),
        quoted(&model.summary)
    );
    if !model.sources.is_empty() {
        text.push_str("\n[sources]\n");
        for (key, source) in &model.sources {
            _ = writeln!(text, "{key} = {}", quoted(source)); // memory takes all that is written to it
        }
    }
    let mut section = "";
    let mut at = 0;
    while let Some(constant) = model.constants.get(at) {
        let (path, key) = constant.field.path.rsplit_once('.').unwrap_or(("", constant.field.path));
        if path != section {
            _ = writeln!(text, "\n[{path}]");
            section = path;
        }
        let of_field: Vec<&Constant> =
            model.constants[at..].iter().take_while(|c| c.field == constant.field).collect();
        at += of_field.len();
        match constant.class {
            None => _ = writeln!(text, "{key} = {}", entry(constant)),
            Some(_) => {
                _ = writeln!(text, "{key} = [");
                of_field.iter().for_each(|c| _ = writeln!(text, "    {},", entry(c)));
                text.push_str("]\n");
            }
        }
        if constant.field.path == "topology.sockets_per_node" {
            _ = writeln!(text, "{}", distance(model));
        }
    }
    text
}

fn distance(model: &Model) -> String {
    let row = |row: &Vec<u8>| format!("        {row:?},\n");
    let rows: String = model.distance.iter().map(row).collect();
    let origin = origin(&model.distance_origin);
    format!("distance = {{ rows = [\n{rows}    ], {origin} }}")
}

fn entry(constant: &Constant) -> String {
    let number = |number: f64| match constant.field.unit {
        Unit::Choice => quoted(&constant.show(number)),
        _ => constant.show(number),
    };
    let Constant { provenance, from, note, .. } = constant.clone();
    format!(
        "{{ value = {}, low = {}, high = {}, {} }}",
        number(constant.value),
        number(constant.low),
        number(constant.high),
        origin(&Origin { provenance, from, note })
    )
}

fn origin(origin: &Origin) -> String {
    let mut text = format!("provenance = {}", quoted(origin.provenance.name()));
    for (key, value) in [("from", &origin.from), ("note", &origin.note)] {
        if let Some(value) = value {
            _ = write!(text, ", {key} = {}", quoted(value));
        }
    }
    text
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
