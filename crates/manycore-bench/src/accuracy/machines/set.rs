//! A set of published measurements, in one form for all sources.
//!
//! A set is two files in `figures/measured`. `NAME.toml` describes the workload, the source, how
//! far the set can be trusted, and what is simulated in its place. `NAME.csv` has the points. The
//! parser is strict: each name in one file must be known to the other. An error names file, line
//! and remedy.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

use super::experiment::Experiment;
use super::measure::Measure;
use super::programs::contend::Filling;
use crate::failure::Failure;

/// The header of every table of points.
const HEADER: &str = "machine,case,subject,threads,value";

/// The description of a set, with its points.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedSet {
    schema: u32,
    /// The name of the set's files.
    #[serde(skip)]
    pub name: String,
    /// The kind of structure or mechanism that the set judges.
    pub kind: Kind,
    /// How far the set can be trusted.
    pub grade: Grade,
    /// The source: the publishers, and the place.
    pub source: String,
    /// The published workload.
    pub workload: String,
    /// The simulated workload, and how it differs.
    pub simulated: String,
    /// The unit of the values, for conversion to rates.
    pub measure: Measure,
    /// The unit of the values, in words.
    pub unit: String,
    /// The number of operations a second that a rate of 1 stands for.
    #[serde(default = "one")]
    pub scale: f64,
    /// Whether constants of models come from this set. Then the output shows it, and does not judge
    /// it.
    #[serde(default)]
    pub calibrates: bool,
    /// Explanations of deviations.
    #[serde(default)]
    pub findings: Vec<String>,
    pub machines: Vec<MeasuredMachine>,
    pub cases: Vec<Case>,
    pub subjects: Vec<Subject>,
    #[serde(skip)]
    points: Vec<Point>,
}

fn one() -> f64 {
    1.0
}

/// What a set judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sorted lists
    Lists,
    /// Hash tables
    HashTables,
    /// Search trees
    Trees,
    /// Queues and stacks
    Queues,
    /// Mutual exclusion
    Locks,
    /// Reader-writer locks
    ReadersWriters,
    /// One word that all change
    Counters,
    /// Lines between cores
    Lines,
    /// Freeing what others may read
    Reclamation,
    /// Calls of the kernel
    Kernel,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Lists => "lists",
            Self::HashTables => "hash-tables",
            Self::Trees => "trees",
            Self::Queues => "queues",
            Self::Locks => "locks",
            Self::ReadersWriters => "readers-writers",
            Self::Counters => "counters",
            Self::Lines => "lines",
            Self::Reclamation => "reclamation",
            Self::Kernel => "kernel",
        })
    }
}

/// How far a set can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Grade {
    /// Repeated runs with their spread, a public workload, a named machine.
    A,
    /// One of these is missing.
    B,
    /// A single run, an unnamed machine, or a known defect. The output shows it, and does not judge
    /// it.
    C,
}

impl Grade {
    /// By which factor a simulation may differ.
    pub fn band(self) -> f64 {
        match self {
            Self::A => 1.5,
            Self::B | Self::C => 2.0,
        }
    }
}

/// A measured machine.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasuredMachine {
    /// The machine's name in the table.
    pub name: String,
    /// The name of the machine's model.
    pub model: String,
    /// The numbers of threads that are simulated unless options ask for others.
    pub threads: Vec<u32>,
    /// The order in which threads were put on CPUs.
    #[serde(default)]
    pub filling: Filling,
}

impl MeasuredMachine {
    /// Whether a name means this machine: its own name, or its model's, which may omit the ending.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.model == name || self.model.strip_suffix("-like") == Some(name)
    }
}

/// One workload of a set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// The case's name in the table.
    pub name: String,
    /// Whether only `--full` simulates it.
    #[serde(default)]
    pub only_full: bool,
    /// The simulation.
    pub run: Experiment,
}

/// A mechanism or structure that was measured with each workload.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    /// The subject's name in the table.
    pub name: String,
    /// Its counterpart in manycore; empty if there is none.
    #[serde(default)]
    pub ours: Option<String>,
    /// How the counterpart differs, or why there is none.
    #[serde(default)]
    pub note: Option<String>,
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub machine: usize,
    pub case: usize,
    pub subject: usize,
    pub threads: u32,
    pub value: f64,
}

impl PublishedSet {
    /// Parses both files of a set. Errors refer to it as `file`.
    pub fn parse(name: &str, file: &str, description: &str, table: &str) -> Result<Self, Failure> {
        let fault = |what: String| Failure::Failed(format!("{file}: {what}"));
        let mut set: Self = toml::from_str(description)
            .map_err(|error| fault(format!("the description: {}", error.to_string().trim_end())))?;
        if set.schema != 1 {
            return Err(fault(format!(
                "schema {} is unknown; this version reads schema 1",
                set.schema
            )));
        }
        set.name = name.to_owned();
        set.check().map_err(&fault)?;
        set.points = set.read(table).map_err(fault)?;
        Ok(set)
    }

    /// All published points.
    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter()
    }

    /// A point, for messages.
    pub fn in_words(&self, point: &Point) -> String {
        format!(
            "{}, {}, {}, {}, {} threads",
            self.name,
            self.machines[point.machine].name,
            self.cases[point.case].name,
            self.subjects[point.subject].name,
            point.threads
        )
    }

    fn check(&self) -> Result<(), String> {
        let twice = |what: &str, names: Vec<&str>| {
            let mut seen = BTreeSet::new();
            match names.iter().find(|name| !seen.insert(**name)) {
                Some(name) => Err(format!("{what} `{name}` occurs twice: keep one")),
                None => Ok(()),
            }
        };
        twice("machine", self.machines.iter().map(|one| one.name.as_str()).collect())?;
        twice("case", self.cases.iter().map(|one| one.name.as_str()).collect())?;
        twice("subject", self.subjects.iter().map(|one| one.name.as_str()).collect())?;
        let unexplained = |one: &&Subject| one.ours.is_none() && one.note.is_none();
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(format!(
                "`scale` is {}: it is how many operations a second are 1",
                self.scale
            ));
        }
        if let Some(subject) = self.subjects.iter().find(unexplained) {
            return Err(format!(
                "subject `{}`: it has no counterpart; say in `note` why",
                subject.name
            ));
        }
        let unsorted = |one: &&MeasuredMachine| {
            one.threads.is_empty() || !one.threads.is_sorted_by(|a, b| a < b)
        };
        if let Some(machine) = self.machines.iter().find(unsorted) {
            return Err(format!(
                "machine `{}`: `threads` must be an ascending list with at least one number",
                machine.name
            ));
        }
        Ok(())
    }

    fn read(&self, table: &str) -> Result<Vec<Point>, String> {
        let mut lines = table.lines().enumerate();
        if lines.next().is_none_or(|(_, header)| header != HEADER) {
            return Err(format!("the first line of the table has to be `{HEADER}`"));
        }
        let mut seen = BTreeSet::new();
        let mut points = Vec::new();
        for (number, line) in lines {
            let at = |what: String| format!("line {}: {what}", number + 1);
            let point = self.point(line).map_err(at)?;
            if !seen.insert((point.machine, point.case, point.subject, point.threads)) {
                return Err(at(
                    "the same point occurs twice: keep one line, with the median".into()
                ));
            }
            points.push(point);
        }
        let unused = (0..self.cases.len()).find(|case| points.iter().all(|one| one.case != *case));
        if let Some(case) = unused {
            return Err(format!("case `{}` has no point: remove it", self.cases[case].name));
        }
        Ok(points)
    }

    fn point(&self, line: &str) -> Result<Point, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [machine, case, subject, threads, value] = fields[..] else {
            return Err(format!("`{line}` does not have the five fields of `{HEADER}`"));
        };
        let place = |what: &str, name: &str, names: Vec<&str>| {
            names
                .iter()
                .position(|known| *known == name)
                .ok_or_else(|| format!("{what} `{name}` is not in the description: add it there"))
        };
        let threads: u32 = threads
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| format!("`{threads}` is no number of threads"))?;
        let value = value
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite() && *value > 0.0)
            .ok_or_else(|| format!("`{value}` is no number above 0"))?;
        Ok(Point {
            machine: place(
                "machine",
                machine,
                self.machines.iter().map(|one| one.name.as_str()).collect(),
            )?,
            case: place("case", case, self.cases.iter().map(|one| one.name.as_str()).collect())?,
            subject: place(
                "subject",
                subject,
                self.subjects.iter().map(|one| one.name.as_str()).collect(),
            )?,
            threads,
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTION: &str = r#"
schema = 1
kind = "locks"
grade = "A"
source = "a page"
workload = "a loop"
simulated = "the same loop"
measure = "rate"
unit = "1/s"
machines = [{ name = "m", model = "xeon-4x6-like", threads = [1, 2] }]
subjects = [{ name = "s", ours = "mcs" }]
[[cases]]
name = "c"
run = { kind = "sections", section_ns = 100.0, outside_ns = 0.0 }
"#;

    fn refused(description: &str, table: &str, word: &str) {
        let message =
            PublishedSet::parse("x", "x.toml", description, table).unwrap_err().to_string();
        assert!(message.contains(word) && message.starts_with("x.toml"), "{message}");
    }

    #[test]
    fn a_set_parses() {
        let set =
            PublishedSet::parse("x", "x.toml", DESCRIPTION, &format!("{HEADER}\nm,c,s,2,3.5\n"));
        let set = set.unwrap();
        assert_eq!(set.points, [Point { machine: 0, case: 0, subject: 0, threads: 2, value: 3.5 }]);
        assert_eq!((set.kind, set.grade.band()), (Kind::Locks, 1.5));
    }

    #[test]
    fn mistakes_are_named() {
        let table = |rows: &str| format!("{HEADER}\n{rows}");
        let good = table("m,c,s,2,3.5\n");
        refused(DESCRIPTION, "machine,subject\n", "first line");
        refused(DESCRIPTION, &table("m,c,s,2,3.5\nm,c,s,2,4\n"), "line 3: the same point");
        refused(DESCRIPTION, &table("q,c,s,2,3.5\n"), "machine `q`");
        refused(DESCRIPTION, &table("m,c,s,0,3.5\n"), "no number of threads");
        refused(DESCRIPTION, &table("m,c,s,2,nan\n"), "no number above 0");
        refused(DESCRIPTION, &table("m,c,s,2\n"), "five fields");
        refused(DESCRIPTION, &table(""), "case `c` has no point");
        refused(&DESCRIPTION.replace("schema = 1", "schema = 2"), &good, "schema 2");
        refused(&DESCRIPTION.replace("grade", "rank"), &good, "rank");
        refused(&DESCRIPTION.replace("[1, 2]", "[2, 1]"), &good, "ascending");
        refused(&DESCRIPTION.replace(", ours = \"mcs\"", ""), &good, "say in `note`");
    }
}
