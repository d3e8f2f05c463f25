//! Reading the file format, with errors for the authors of files.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::constant::{Constant, Origin, Provenance};
use super::field::{CHOICES, FIELDS, Field, Unit};
use super::{Model, Problem};
use crate::machine::Topology;

/// The version of the format.
pub(super) const SCHEMA: i64 = 1;

/// The most CPUs that a machine may have.
const CPUS_MAX: u32 = 4_096;

const A_CONSTANT: &str =
    "write { value = .., low = .., high = .., provenance = \"..\", and `from` or `note` }";

/// The file that is being read.
pub(super) struct Reader<'a> {
    file: &'a str,
    sources: BTreeMap<String, String>,
}

pub(super) fn parse(file: &str, text: &str) -> Result<Model, Problem> {
    let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
        let fault = format!("not TOML in line {line}: {}", error.message().trim_end());
        Problem::of_file(file, fault, "correct the line")
    })?;
    let mut reader = Reader::new(file);
    reader.schema(&mut table)?;
    let name = reader.line(&mut table, "name")?;
    let summary = reader.line(&mut table, "summary")?;
    reader.sources(&mut table)?;
    let (distance, distance_origin) = reader.distance(&mut table)?;
    let classes = distance.iter().flatten().max().map_or(0, |class| usize::from(*class) + 1);
    let mut constants = Vec::new();
    let sections: Vec<String> = table.keys().cloned().collect();
    let is_absent = |section: &str| !sections.iter().any(|there| there == section);
    for field in FIELDS {
        if field.section.is_some_and(is_absent) {
            continue;
        }
        constants.extend(reader.field(&mut table, field, classes)?);
    }
    reader.nothing_left(&table, "")?;
    let model =
        Model { name, summary, sources: reader.sources, distance, distance_origin, constants };
    check_shape(file, &model)?;
    Ok(model)
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: &'a str) -> Self {
        Self { file, sources: BTreeMap::new() }
    }

    pub(super) fn into_sources(self) -> BTreeMap<String, String> {
        self.sources
    }

    /// A required key of a source.
    pub(super) fn source(
        &self,
        table: &mut Table,
        key: &str,
        name: &str,
    ) -> Result<String, Problem> {
        let remedy = "name a key of [sources]";
        match table.remove(key) {
            Some(Value::String(source)) if self.sources.contains_key(&source) => Ok(source),
            Some(other) => {
                Err(self.fault(name, format!("comes from {other}, which is no source"), remedy))
            }
            None => Err(self.fault(name, format!("has no `{key}`"), remedy)),
        }
    }

    pub(super) fn fault(
        &self,
        field: &str,
        fault: impl std::fmt::Display,
        remedy: &str,
    ) -> Problem {
        Problem::of_field(self.file, field, fault, remedy)
    }

    pub(super) fn schema(&self, table: &mut Table) -> Result<(), Problem> {
        match table.remove("schema") {
            Some(Value::Integer(SCHEMA)) => Ok(()),
            Some(other) => {
                let fault = format!("is {other}, which this version cannot read");
                Err(self.fault("schema", fault, "it reads schema 1"))
            }
            None => Err(self.fault("schema", "is missing", "add `schema = 1`")),
        }
    }

    /// A required line of text.
    pub(super) fn line(&self, table: &mut Table, key: &str) -> Result<String, Problem> {
        match table.remove(key) {
            Some(Value::String(text)) if !text.trim().is_empty() && !text.contains('\n') => {
                Ok(text)
            }
            _ => Err(self.fault(key, "is missing or no line of text", "add one, in quotes")),
        }
    }

    pub(super) fn sources(&mut self, table: &mut Table) -> Result<(), Problem> {
        let Some(sources) = table.remove("sources") else { return Ok(()) };
        let remedy = "write `[sources]` and a line `key = \"publication\"` for each";
        let Value::Table(sources) = sources else {
            return Err(self.fault("sources", "is no table", remedy));
        };
        for (key, value) in sources {
            let Value::String(text) = value else {
                return Err(self.fault(&format!("sources.{key}"), "is no text", remedy));
            };
            self.sources.insert(key, text);
        }
        Ok(())
    }

    fn distance(&self, table: &mut Table) -> Result<(Vec<Vec<u8>>, Origin), Problem> {
        const FIELD: &str = "topology.distance";
        let remedy = "write { rows = [[0, 1], [1, 0]], provenance = \"..\", and `from` or `note` }: \
                      a class for each pair of sockets, 0 from a socket to itself and only there";
        let wrong = |fault: &str| self.fault(FIELD, fault, remedy);
        let Some(Value::Table(mut entry)) = take(table, FIELD) else {
            return Err(wrong("is missing or no table"));
        };
        let class = |value: &Value| value.as_integer().and_then(|class| u8::try_from(class).ok());
        let row = |row: &Value| row.as_array()?.iter().map(class).collect::<Option<Vec<u8>>>();
        let rows = entry.remove("rows");
        let rows = rows.as_ref().and_then(Value::as_array);
        let rows: Option<Vec<Vec<u8>>> = rows.and_then(|rows| rows.iter().map(row).collect());
        let rows = rows.ok_or_else(|| wrong("has no `rows` of classes from 0 to 255"))?;
        let count = rows.len();
        let sound = |from: usize, to: usize| {
            rows[from].len() == count && (rows[from][to] == 0) == (from == to)
        };
        let symmetric = |from: usize, to: usize| rows[from][to] == rows[to][from];
        let pairs = || (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        if rows.iter().any(|row| row.len() != count) {
            return Err(wrong("is not square"));
        }
        if !pairs().all(|(from, to)| sound(from, to) && symmetric(from, to)) {
            return Err(wrong("is not symmetric with 0 on its diagonal and only there"));
        }
        let most = rows.iter().flatten().max().copied().unwrap_or(0);
        if let Some(gap) = (0..=most).find(|class| !rows.iter().flatten().any(|c| c == class)) {
            return Err(wrong(&format!("skips class {gap}")));
        }
        let origin = self.origin(&mut entry, FIELD)?;
        self.nothing_left(&entry, FIELD)?;
        Ok((rows, origin))
    }

    fn field(
        &self,
        table: &mut Table,
        field: &'static Field,
        classes: usize,
    ) -> Result<Vec<Constant>, Problem> {
        let found = take(table, field.path);
        if !field.per_distance {
            let Some(Value::Table(entry)) = found else {
                return Err(self.fault(field.path, "is missing or no table", A_CONSTANT));
            };
            return Ok(vec![self.constant(entry, field, None)?]);
        }
        let remedy = "write a list with a constant for each class of distance";
        let Some(Value::Array(entries)) = found else {
            return Err(self.fault(field.path, "is missing or no list", remedy));
        };
        if entries.len() != classes {
            let fault = format!("has {} entries for {classes} classes of distance", entries.len());
            return Err(self.fault(field.path, fault, remedy));
        }
        let entry = |(class, entry): (usize, Value)| match entry {
            Value::Table(entry) => self.constant(entry, field, Some(class)),
            _ => Err(self.fault(&format!("{}[{class}]", field.path), "is no table", A_CONSTANT)),
        };
        entries.into_iter().enumerate().map(entry).collect()
    }

    pub(super) fn constant(
        &self,
        mut entry: Table,
        field: &'static Field,
        class: Option<usize>,
    ) -> Result<Constant, Problem> {
        let name = match class {
            Some(class) => format!("{}[{class}]", field.path),
            None => field.path.to_owned(),
        };
        let mut number = |key: &str| self.number(entry.remove(key), field, &name, key);
        let (value, low, high) = (number("value")?, number("low")?, number("high")?);
        let Origin { provenance, from, note } = self.origin(&mut entry, &name)?;
        self.nothing_left(&entry, &name)?;
        if !(low <= value && value <= high) {
            let fault = format!("has {value} outside its range of {low} to {high}");
            return Err(self.fault(&name, fault, "write low <= value <= high"));
        }
        if provenance == Provenance::Assumed && low == high {
            let remedy = "widen `low` and `high` until you are sure of them";
            return Err(self.fault(&name, "is assumed, but has no range", remedy));
        }
        Ok(Constant { field, class, value, low, high, provenance, from, note })
    }

    fn number(
        &self,
        value: Option<Value>,
        field: &Field,
        name: &str,
        key: &str,
    ) -> Result<f64, Problem> {
        let number = match (&value, field.unit) {
            (Some(Value::String(text)), Unit::Choice) => {
                CHOICES.iter().position(|choice| choice == text).map(|place| place as f64)
            }
            (_, Unit::Choice) => None,
            (Some(Value::Integer(number)), _) => Some(*number as f64),
            (Some(Value::Float(number)), unit) if !unit.is_whole() => Some(*number),
            _ => None,
        };
        let in_bounds = |number: &f64| (field.least..=field.most).contains(number);
        if let Some(number) = number.filter(in_bounds) {
            return Ok(number);
        }
        let expected = match field.unit {
            Unit::Choice => {
                format!("write one of {}", CHOICES.map(|c| format!("{c:?}")).join(", "))
            }
            unit => {
                let kind = if unit.is_whole() { "whole number" } else { "number" };
                let unit =
                    if unit.name().is_empty() { "" } else { &format!(" of {}", unit.name()) };
                format!("write a {kind}{unit} from {} to {}", field.least, field.most)
            }
        };
        let found = value.map_or("missing".to_owned(), |value| value.to_string());
        Err(self.fault(name, format!("has `{key}` {found}"), &expected))
    }

    fn origin(&self, entry: &mut Table, name: &str) -> Result<Origin, Problem> {
        let names = Provenance::ALL.map(Provenance::name).join(", ");
        let found = entry.remove("provenance");
        let provenance: Option<Provenance> =
            found.as_ref().and_then(Value::as_str).and_then(|text| text.parse().ok());
        let Some(provenance) = provenance else {
            let fault = match found {
                Some(value) => format!("has provenance {value}"),
                None => "has no provenance".to_owned(),
            };
            return Err(self.fault(name, fault, &format!("say one of {names}")));
        };
        let mut text = |key: &str| match entry.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
            Some(_) => Err(self.fault(name, format!("has a `{key}` without text"), "write some")),
        };
        let (from, note) = (text("from")?, text("note")?);
        if let Some(key) = from.as_ref().filter(|key| !self.sources.contains_key(*key)) {
            let fault = format!("comes from `{key}`, which is no source");
            return Err(self.fault(name, fault, "add a line with this key under [sources]"));
        }
        if provenance.needs_source() && from.is_none() {
            let fault = format!("is {provenance}, but has no source");
            return Err(self.fault(name, fault, "add `from` with a key of [sources]"));
        }
        if provenance.needs_note() && note.is_none() {
            let fault = format!("is {provenance}, but has no note");
            return Err(self.fault(name, fault, "add a `note`: by what, from what, or why"));
        }
        Ok(Origin { provenance, from, note })
    }

    /// Checks that no key is left that was not read.
    pub(super) fn nothing_left(&self, table: &Table, prefix: &str) -> Result<(), Problem> {
        for (key, value) in table {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                Value::Table(inner) if inner.is_empty() => {}
                Value::Table(inner) if is_section(&path) => self.nothing_left(inner, &path)?,
                _ => {
                    let remedy =
                        "remove it, or correct its name (`manycore machines NAME` shows all)";
                    return Err(self.fault(&path, "is not known", remedy));
                }
            }
        }
        Ok(())
    }
}

/// Takes the value at a path of keys out of nested tables.
fn take(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => table.remove(path),
        Some((first, rest)) => take(table.get_mut(first)?.as_table_mut()?, rest),
    }
}

/// Whether there are fields below this path.
fn is_section(path: &str) -> bool {
    FIELDS
        .iter()
        .any(|field| field.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// Checks that the parts fit each other.
fn check_shape(file: &str, model: &Model) -> Result<(), Problem> {
    let machine = model.machine();
    let topology = &machine.topology;
    let Topology { sockets, sockets_per_node, .. } = *topology;
    let fault = |field: &str, fault: String, remedy: &str| {
        Err(Problem::of_field(file, field, fault, remedy))
    };
    if model.distance.len() != sockets as usize {
        let found = format!("has {} rows for {sockets} sockets", model.distance.len());
        return fault("topology.distance", found, "write a row for each socket");
    }
    if !sockets.is_multiple_of(sockets_per_node) {
        let found = format!("is {sockets_per_node}, which does not divide {sockets} sockets");
        return fault("topology.sockets_per_node", found, "each node has as many sockets");
    }
    // Each factor is below its own bound, so this does not overflow.
    if topology.cpus() > CPUS_MAX {
        let found = format!("makes {} CPUs", topology.cpus());
        return fault("topology.cores_per_socket", found, "at most 4096 can be simulated");
    }
    let caches = [
        ("caches.l1.bytes", machine.caches.l1),
        ("caches.l2.bytes", machine.caches.l2),
        ("caches.llc.bytes", machine.caches.llc),
    ];
    match caches.into_iter().find(|(_, cache)| cache.bytes < 64 * u64::from(cache.ways)) {
        Some((field, cache)) => {
            let found = format!("is {}, less than a set of {} lines", cache.bytes, cache.ways);
            fault(field, found, "make it larger, or the ways fewer")
        }
        None => Ok(()),
    }
}
