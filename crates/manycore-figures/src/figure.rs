//! The file of a figure.

use serde::Deserialize;

use crate::field::{Coordinate, Field};
use crate::statement::Statement;
use crate::workload::Workload;

/// A published figure, or several of the same experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Its name, which is that of its file.
    #[serde(skip)]
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The publication.
    pub source: String,
    /// What the publication shows.
    pub published: String,
    /// How the figure is repeated here, and what the model leaves out.
    pub model: String,
    /// The machine, a name of `manycore machines`.
    pub machine: String,
    /// The dimension along the horizontal axis.
    pub x: Field,
    /// Dimensions that get a picture for each place.
    #[serde(default)]
    pub panels: Vec<Field>,
    /// What is simulated.
    pub workload: Workload,
    /// What the publication leaves open or we chose.
    #[serde(default, rename = "parameter")]
    pub parameters: Vec<Parameter>,
    /// What the publication claims.
    #[serde(rename = "claim")]
    pub claims: Vec<Statement>,
}

/// A free parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// What it is.
    pub name: String,
    /// Its value.
    pub value: String,
    /// How it was chosen.
    pub provenance: Choice,
    /// By what.
    #[serde(default)]
    pub why: String,
}

/// How a parameter was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// Taken from a publication.
    Cited,
    /// Derived from known properties of the program, the kernel or a library.
    Derived,
    /// Measured natively.
    Measured,
    /// So that one published value comes out.
    Fitted,
    /// Plausible.
    Assumed,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Cited => "cited",
            Self::Derived => "derived",
            Self::Measured => "measured",
            Self::Fitted => "fitted",
            Self::Assumed => "assumed",
        })
    }
}

/// How much of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// The points and the time under `[quick]`.
    Quick,
}

/// Why a file is no figure, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(pub(crate) String);

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl Figure {
    /// Reads a file; the id is its name without the ending.
    pub fn parse(id: &str, text: &str, extent: Extent) -> Result<Self, Problem> {
        let problem = |what: String| {
            let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
            Problem(format!("the figure `{id}` cannot be used: {what}"))
        };
        let mut file: toml::Table =
            toml::from_str(text).map_err(|error| problem(error.to_string()))?;
        let quick = file.remove("quick");
        if extent == Extent::Quick {
            shorten(&mut file, quick).map_err(|what| problem(what.to_owned()))?;
        }
        let mut figure: Self = file.try_into().map_err(|error| problem(error.to_string()))?;
        figure.id = id.to_owned();
        // A shortened figure does not have everything that claims name.
        let stranger = (extent == Extent::Whole).then(|| figure.stranger()).flatten();
        match figure.fault().or(stranger) {
            None => Ok(figure),
            Some(fault) => Err(problem(fault)),
        }
    }

    fn stranger(&self) -> Option<String> {
        let has = |field, place: &Coordinate| self.workload.has(field, place);
        let dimensions = self.panels.iter().chain([&self.x]);
        let mut unknown = dimensions.filter(|field| self.workload.places(**field).is_empty());
        if let Some(field) = unknown.next() {
            return Some(format!("the workload has no {} to draw by", field.name()));
        }
        let of_claim =
            |claim: &Statement| Some(format!("claim `{}`: {}", claim.id, claim.stranger(has)?));
        self.claims.iter().find_map(of_claim).or_else(|| self.undrawn())
    }

    /// A dimension with several coordinates that no picture shows.
    fn undrawn(&self) -> Option<String> {
        let is_drawn = |field: &Field| {
            self.panels.contains(field) || *field == self.x || *field == Field::Series
        };
        let mut mixed =
            Field::all().filter(|field| !is_drawn(field) && self.workload.places(*field).len() > 1);
        mixed.next().map(|field| format!("it has several {0}: add `{0}` to `panels`", field.name()))
    }

    fn fault(&self) -> Option<String> {
        let mut seen = std::collections::BTreeSet::new();
        let of_claim = |claim: &Statement| {
            let again = (!seen.insert(claim.id.clone())).then_some("another has the same id");
            let fault = again.or_else(|| claim.fault())?;
            Some(format!("claim `{}`: {fault}", claim.id))
        };
        self.claims.iter().find_map(of_claim)
    }
}

/// Replaces the workload's values by those under `[quick]`.
fn shorten(file: &mut toml::Table, quick: Option<toml::Value>) -> Result<(), &'static str> {
    let Some(toml::Value::Table(quick)) = quick else {
        return Err("it has no table `quick`");
    };
    let workload = file.get_mut("workload").and_then(toml::Value::as_table_mut);
    let workload = workload.and_then(|kinds| kinds.iter_mut().next()?.1.as_table_mut());
    workload.ok_or("it has no workload")?.extend(quick);
    Ok(())
}
