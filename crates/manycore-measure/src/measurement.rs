//! One measured value, and the data needed to judge it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One value with its workload, its spread and its origin. [`schema`](crate::schema) describes each
/// field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What ran.
    pub workload: String,
    /// The data structure that it ran on.
    pub structure: Option<String>,
    /// What was under test.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// Threads of the workload.
    pub threads: u32,
    /// The share of operations that write, in percent.
    pub update: Option<f64>,
    /// The median over the repetitions.
    pub value: f64,
    /// The unit of `value`, `low` and `high`, without a prefix.
    pub unit: String,
    /// The lower end of the 95 % interval of `value`.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Independent repetitions behind `value`.
    pub repetitions: u32,
    /// How the value came about.
    pub provenance: Provenance,
    /// The host or the machine model.
    pub machine: String,
    /// The seed of every random choice of the run.
    pub seed: Option<u64>,
    /// What else the workload was told.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// What else was measured in the same repetitions.
    #[serde(default)]
    pub metrics: BTreeMap<String, Metric>,
}

impl Measurement {
    /// A native measurement of one repetition by one thread; the caller sets the differing fields.
    pub fn new(workload: &str, mechanism: Mechanism, unit: &str, value: f64) -> Self {
        Self {
            workload: workload.into(),
            structure: None,
            mechanism,
            threads: 1,
            update: None,
            value,
            unit: unit.into(),
            low: None,
            high: None,
            repetitions: 1,
            provenance: Provenance::Native,
            machine: "this host".into(),
            seed: None,
            parameters: BTreeMap::new(),
            metrics: BTreeMap::new(),
        }
    }

    /// A parameter that is a number.
    pub fn number(&self, parameter: &str) -> Option<f64> {
        match self.parameters.get(parameter)? {
            Parameter::Number(number) => Some(*number),
            Parameter::Name(_) => None,
        }
    }

    /// A parameter that is a name.
    pub fn name(&self, parameter: &str) -> Option<&str> {
        match self.parameters.get(parameter)? {
            Parameter::Name(name) => Some(name),
            Parameter::Number(_) => None,
        }
    }

    /// The first fault of the record, if there is one: a value that cannot be right.
    pub(crate) fn fault(&self) -> Option<String> {
        let metrics = self.metrics.iter().map(|(name, m)| (name.as_str(), m.value, m.low, m.high));
        std::iter::once(("value", self.value, self.low, self.high)).chain(metrics).find_map(
            |(name, value, low, high)| {
                let ordered = low.unwrap_or(value) <= value && value <= high.unwrap_or(value);
                let finite = [Some(value), low, high].into_iter().flatten().all(f64::is_finite);
                let about = format!("`{name}` of {} {}", self.workload, self.mechanism.name());
                match (finite, ordered) {
                    (false, _) => Some(format!("{about} is not a finite number")),
                    (_, false) => Some(format!("{about} lies outside its interval")),
                    _ => None,
                }
            },
        )
    }
}

/// What is under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mechanism {
    /// A lock, by its name.
    Lock(String),
    /// Another way to synchronise: `mvrlu`, `rcu`, `lock:NAME`, ...
    Sync(String),
}

impl Mechanism {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Lock(name) | Self::Sync(name) => name,
        }
    }
}

/// How a value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Measured on a host.
    Native,
    /// Computed by the simulator.
    Simulated,
    /// Read from a paper.
    Published,
    /// Computed by a model that was fitted to measurements.
    Fitted,
}

/// A further value from the same repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The value.
    pub value: f64,
    /// Its unit, without a prefix.
    pub unit: String,
    /// The lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub high: Option<f64>,
}

/// Something that a workload was told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
}

impl From<f64> for Parameter {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Parameter {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}
