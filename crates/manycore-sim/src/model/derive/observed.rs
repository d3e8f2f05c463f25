//! The file with the measurements of a machine.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::matrix;
use super::spread::Spread;
use crate::model::parse::{Reader, SCHEMA};
use crate::model::{Constant, FIELDS, Problem};

/// The groups of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of packages, each with a memory node.
    pub packages: u32,
    /// The number of groups in a package. Cores of a group share a last-level cache.
    pub groups: u32,
    /// The number of cores of a group.
    pub cores: u32,
    /// The number of hardware threads of a core.
    pub threads: u32,
    /// The class of distance between groups, if it is not the usual one: 1 within a package, then
    /// 2; without groups 1.
    pub distance: Option<Vec<Vec<u8>>>,
    /// The number of groups that share a memory node, if it is not that of a package.
    pub groups_per_node: Option<u32>,
}

/// The time of a hand-over between two cores, one way.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOver {
    /// Nanoseconds.
    pub ns: Spread,
    /// Whether it is an uncontended atomic operation: then no core has kept the line.
    pub alone: bool,
    /// The key of the source.
    pub from: String,
    /// Further remarks.
    pub note: Option<String>,
}

/// The measurements of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The model's name.
    pub name: String,
    /// A description of the machine, in one line.
    pub summary: String,
    /// The model of a similar machine, which provides the constants that were not measured.
    pub like: String,
    /// Publications by the keys that `from` names.
    pub sources: BTreeMap<String, String>,
    /// The groups of CPUs.
    pub shape: Shape,
    /// The key of the source of the shape.
    pub shape_from: String,
    /// By class of distance, from within a group on.
    pub hand_overs: Vec<HandOver>,
    /// Known constants of this machine.
    pub known: Vec<Constant>,
    file: String,
}

impl Observed {
    /// Reads the file. Errors refer to it as `file`.
    pub fn parse(file: &str, text: &str) -> Result<Self, Problem> {
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            let fault = format!("not TOML in line {line}: {}", error.message().trim_end());
            Problem::of_file(file, fault, "correct the line")
        })?;
        let mut reader = Reader::new(file);
        reader.schema(&mut table)?;
        let name = reader.line(&mut table, "name")?;
        let summary = reader.line(&mut table, "summary")?;
        let like = reader.line(&mut table, "like")?;
        reader.sources(&mut table)?;
        let known = known(&reader, &mut table)?;
        let ((shape, shape_from), hand_overs) = match table.remove("matrix") {
            Some(matrix) => of_matrix(&reader, &mut table, &matrix)?,
            None => (shape(&reader, &mut table)?, hand_overs(&reader, &mut table)?),
        };
        reader.nothing_left(&table, "")?;
        let sources = reader.into_sources();
        let file = file.to_owned();
        Ok(Self { name, summary, like, sources, shape, shape_from, hand_overs, known, file })
    }

    /// Makes the same from a matrix: nanoseconds one way between each pair of CPUs, in
    /// comma-separated rows of a file, as tools for that print it. One of the two directions is
    /// enough.
    pub fn of_matrix(
        file: &str,
        text: &str,
        name: &str,
        like: &str,
        ghz: f64,
    ) -> Result<Self, Problem> {
        let number = |field: &str| field.trim().parse::<f64>().unwrap_or(f64::NAN);
        let rows = text.lines().filter(|line| !line.trim().is_empty());
        let matrix: Vec<Vec<f64>> =
            rows.map(|line| line.split(',').map(number).collect()).collect();
        Self::parse(file, &Self::text(name, like, ghz, &matrix))
    }

    /// The text of a file that has a matrix of nanoseconds one way between each pair of CPUs.
    pub fn text(name: &str, like: &str, ghz: f64, matrix: &[Vec<f64>]) -> String {
        let number = |ns: &f64| match ns.is_finite() {
            true => format!("{ns:.1}"),
            false => "nan".to_owned(),
        };
        let row = |row: &Vec<f64>| {
            format!("    [{}],\n", row.iter().map(number).collect::<Vec<_>>().join(", "))
        };
        let rows: String = matrix.iter().map(row).collect();
        let quoted = |text: &str| Value::String(text.to_owned()).to_string();
        format!(
            "schema = {SCHEMA}\nname = {}\nsummary = {}\nlike = {}\nfrom = \"matrix\"\nmatrix = [\n{rows}]\n\n\
             [sources]\nmatrix = \"hand-overs of a word between all pairs of CPUs, one way\"\n\n\
             [constants]\n\"core.ghz\" = {{ value = {ghz}, low = {ghz}, high = {ghz}, provenance = \"cited\", from = \"matrix\" }}\n",
            quoted(name),
            quoted(&format!("{} CPUs of which the hand-overs were measured", matrix.len())),
            quoted(like),
        )
    }

    /// The name of the file in errors.
    pub(super) fn file(&self) -> &str {
        &self.file
    }
}

type Derivation = ((Shape, String), Vec<HandOver>);

fn of_matrix(reader: &Reader, table: &mut Table, matrix: &Value) -> Result<Derivation, Problem> {
    let number =
        |value: &Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    let row = |row: &Value| row.as_array()?.iter().map(number).collect::<Option<Vec<f64>>>();
    let rows: Option<Vec<Vec<f64>>> =
        matrix.as_array().and_then(|rows| rows.iter().map(row).collect());
    let remedy = "write a row of numbers for each CPU, nanoseconds one way";
    let rows = rows.ok_or_else(|| reader.fault("matrix", "is no list of rows", remedy))?;
    let found = matrix::structure(&rows).map_err(|fault| reader.fault("matrix", fault, remedy))?;
    let from = reader.source(table, "from", "matrix")?;
    let shape = Shape {
        packages: found.packages,
        groups: found.groups,
        cores: found.cores,
        threads: found.threads,
        distance: None,
        groups_per_node: None,
    };
    let hand_over = |ns| HandOver { ns, alone: false, from: from.clone(), note: None };
    Ok(((shape, from.clone()), found.classes.into_iter().map(hand_over).collect()))
}

fn shape(reader: &Reader, table: &mut Table) -> Result<(Shape, String), Problem> {
    let remedy = "write packages, groups of a package, cores of a group, threads of a core, from";
    let Some(Value::Table(mut entry)) = table.remove("topology") else {
        return Err(reader.fault("topology", "is missing or no table", remedy));
    };
    let mut count = |key: &str| match entry.remove(key) {
        Some(Value::Integer(count)) if (1..=4096).contains(&count) => Ok(count as u32),
        _ => Err(reader.fault(&format!("topology.{key}"), "is no number from 1 to 4096", remedy)),
    };
    let (packages, groups) = (count("packages")?, count("groups")?);
    let (cores, threads) = (count("cores")?, count("threads")?);
    let groups_per_node = entry.contains_key("groups_per_node");
    let mut count = |key: &str| match entry.remove(key) {
        Some(Value::Integer(count)) if (1..=64).contains(&count) => Ok(count as u32),
        _ => Err(reader.fault(&format!("topology.{key}"), "is no number from 1 to 64", remedy)),
    };
    let groups_per_node = groups_per_node.then(|| count("groups_per_node")).transpose()?;
    let class = |value: &Value| value.as_integer().and_then(|class| u8::try_from(class).ok());
    let row = |row: &Value| row.as_array()?.iter().map(class).collect::<Option<Vec<u8>>>();
    let distance = match entry.remove("distance") {
        None => None,
        Some(rows) => {
            let rows = rows.as_array().and_then(|rows| rows.iter().map(row).collect());
            let remedy = "write a row of classes for each group";
            Some(rows.ok_or_else(|| reader.fault("topology.distance", "is no matrix", remedy))?)
        }
    };
    let from = reader.source(&mut entry, "from", "topology")?;
    reader.nothing_left(&entry, "topology")?;
    Ok((Shape { packages, groups, cores, threads, distance, groups_per_node }, from))
}

fn hand_overs(reader: &Reader, table: &mut Table) -> Result<Vec<HandOver>, Problem> {
    let remedy = "write a [[hand_over]] with ns, low, high and from for each class of distance";
    let Some(Value::Array(entries)) = table.remove("hand_over") else {
        return Err(reader.fault("hand_over", "is missing or no list", remedy));
    };
    let read = |(class, entry): (usize, Value)| {
        let name = format!("hand_over[{class}]");
        let fault = |fault: &str| reader.fault(&name, fault, remedy);
        let Value::Table(mut entry) = entry else { return Err(fault("is no table")) };
        let mut number = |key: &str| {
            let value = entry.remove(key);
            let number = value.as_ref().and_then(|value| {
                value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
            });
            number.filter(|ns| *ns > 0.0).ok_or_else(|| fault(&format!("has no `{key}` above 0")))
        };
        let ns = Spread { value: number("ns")?, low: number("low")?, high: number("high")? };
        if !(ns.low <= ns.value && ns.value <= ns.high) {
            return Err(fault("has `ns` outside of `low` to `high`"));
        }
        let from = reader.source(&mut entry, "from", &name)?;
        let alone = match entry.remove("alone") {
            None => false,
            Some(Value::Boolean(alone)) => alone,
            Some(_) => return Err(fault("has an `alone` that is neither true nor false")),
        };
        let note = match entry.remove("note") {
            None => None,
            Some(Value::String(note)) => Some(note),
            Some(_) => return Err(fault("has a `note` that is no text")),
        };
        reader.nothing_left(&entry, &name)?;
        Ok(HandOver { ns, alone, from, note })
    };
    entries.into_iter().enumerate().map(read).collect()
}

/// Constants by their paths, written as in a model.
fn known(reader: &Reader, table: &mut Table) -> Result<Vec<Constant>, Problem> {
    let Some(constants) = table.remove("constants") else { return Ok(Vec::new()) };
    let remedy = "write `\"core.ghz\" = { value = .., .. }` under [constants], as in a model";
    let Value::Table(constants) = constants else {
        return Err(reader.fault("constants", "is no table", remedy));
    };
    let read = |(path, entry): (String, Value)| {
        let field = FIELDS.iter().find(|field| field.path == path && !field.per_distance);
        match (field, entry) {
            (Some(field), Value::Table(entry)) => reader.constant(entry, field, None),
            _ => Err(reader.fault(&path, "is no constant that stands alone", remedy)),
        }
    };
    constants.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_makes_a_model() {
        let ns = |from: usize, to: usize| match (from == to, from / 2 == to / 2) {
            (true, _) => 0.0,
            (_, true) => 40.0,
            _ => 120.0,
        };
        let matrix: Vec<Vec<f64>> =
            (0..4).map(|from| (0..4).map(|to| ns(from, to)).collect()).collect();
        let text = Observed::text("m", "xeon-e5-2699v4-2x22", 2.0, &matrix);
        let model = Observed::parse("m.toml", &text).unwrap().model(&[]).unwrap();
        assert_eq!(model.shape(), "2 x 2 = 4 CPUs");
        let csv = "0,,,\n40,0,,\n120,120,0,\n120,120,40,0\n";
        let other = Observed::of_matrix("m.csv", csv, "m", "xeon-e5-2699v4-2x22", 2.0).unwrap();
        assert_eq!(other.model(&[]).unwrap(), model);
        let few = Observed::of_matrix("m.csv", "0,1\n", "m", "xeon-e5-2699v4-2x22", 2.0);
        assert!(few.unwrap_err().to_string().contains("fewer than two"));
    }
}
