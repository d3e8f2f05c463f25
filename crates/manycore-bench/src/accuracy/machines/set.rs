//! A set of published measurements: what was run on which machines, in one form.
//!
//! A set is two files in `figures/measured`: `NAME.toml` says what was measured, by whom, how far
//! it can be trusted and what is simulated in its place; `NAME.csv` has the points. The reader is
//! strict: whatever one of them names the other has to know, and a mistake is told by file, line
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

/// What was published, and what is simulated in its place.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PublishedSet {
    schema: u32,
    /// The name of its files.
    #[serde(skip)]
    pub name: String,
    /// What is judged by it.
    pub kind: Kind,
    /// How far it can be trusted.
    pub grade: Grade,
    /// Who published it, and where.
    pub source: String,
    /// What was run.
    pub workload: String,
    /// What is simulated, and how it differs.
    pub simulated: String,
    /// What values are.
    pub measure: Measure,
    /// Their unit, for a person.
    pub unit: String,
    /// Operations a second that a rate of 1 is.
    #[serde(default = "one")]
    pub scale: f64,
    /// Whether constants of models come from it: then it is shown and does not count.
    #[serde(default)]
    pub calibrates: bool,
    /// What was found by looking at deviations.
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
    /// A single run, an unnamed machine, or a known defect: shown, and not judged.
    C,
}

impl Grade {
    /// Within which factor a simulation has to be.
    pub fn band(self) -> f64 {
        match self {
            Self::A => 1.5,
            Self::B | Self::C => 2.0,
        }
    }
}

/// A machine on which was measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MeasuredMachine {
    /// What the table calls it.
    pub name: String,
    /// The model of it.
    pub model: String,
    /// The numbers of threads that are simulated unless others are asked for.
    pub threads: Vec<u32>,
    /// In which order threads were put on CPUs.
    #[serde(default)]
    pub filling: Filling,
}

impl MeasuredMachine {
    /// Whether this name means it: its own or its model's, which may be without its ending.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.model == name || self.model.strip_suffix("-like") == Some(name)
    }
}

/// One workload of a set.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// What the table calls it.
    pub name: String,
    /// Whether it is simulated unless asked for by `--full`.
    #[serde(default)]
    pub only_full: bool,
    /// What is simulated.
    pub run: Experiment,
}

/// What was measured under each workload.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Subject {
    /// What the table calls it.
    pub name: String,
    /// What stands for it here; nothing if we have none.
    #[serde(default)]
    pub ours: Option<String>,
    /// How that differs, or why there is none.
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
    /// Reads both files of a set; `file` is what errors call them.
    pub fn parse(name: &str, file: &str, description: &str, table: &str) -> Result<Self, Failure> {
        let fault = |what: String| Failure::Failed(format!("{file}: {what}"));
        let mut set: Self = toml::from_str(description)
            .map_err(|error| fault(format!("the description: {}", error.to_string().trim_end())))?;
        if set.schema != 1 {
            return Err(fault(format!("schema {} cannot be read; this reads 1", set.schema)));
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

    /// A point, for a message.
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
                Some(name) => Err(format!("{what} `{name}` is there twice: keep one")),
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
            return Err(format!("subject `{}`: say in `note` why none is ours", subject.name));
        }
        let unsorted = |one: &&MeasuredMachine| {
            one.threads.is_empty() || !one.threads.is_sorted_by(|a, b| a < b)
        };
        if let Some(machine) = self.machines.iter().find(unsorted) {
            return Err(format!("machine `{}`: `threads` has to rise, and have one", machine.name));
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
                return Err(at("the same point is there twice: give their median once".into()));
            }
            points.push(point);
        }
        let unused = (0..self.cases.len()).find(|case| points.iter().all(|one| one.case != *case));
        if let Some(case) = unused {
            return Err(format!("case `{}` has no point: take it out", self.cases[case].name));
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
    fn a_set_is_read() {
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
        refused(&DESCRIPTION.replace("[1, 2]", "[2, 1]"), &good, "has to rise");
        refused(&DESCRIPTION.replace(", ours = \"mcs\"", ""), &good, "say in `note`");
    }
}
