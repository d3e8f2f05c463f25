//! One simulation: what determines its result, and the result.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::hash::hash;
use crate::slice::{Pinning, Slice};

/// Everything that determines the result of a simulation, except for the simulator itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The machine's model, as the text of its file.
    pub machine: String,
    /// The number of its CPUs that the program may use; `None` means all.
    pub cpus: Option<u32>,
    /// The name of the lock, or of another mechanism.
    pub mechanism: String,
    /// The number of threads, without the one that starts them.
    pub threads: u32,
    /// What they do.
    pub program: Program,
    /// The simulated time that is counted. An uncounted fifth of it comes before.
    pub measured: Duration,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// What everything is drawn by.
    pub seed: u64,
    /// Whether each turn of a polling loop is simulated.
    pub every_turn: bool,
    /// Whether waiters of queue locks spin for as long as it takes.
    pub patient: bool,
}

/// The work of threads, of any workload: JSON with one field, which is named after the program and
/// has its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Program(Box<RawValue>);

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Program {
    /// A job of this name, with the JSON of its data.
    pub fn new(name: &str, data: &str) -> Self {
        let field = RawValue::from_string(format!("{{\"{name}\":{data}}}"));
        Self(field.expect("a field with JSON in it is JSON"))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.0.get().split('"').nth(1).unwrap_or_default()
    }

    /// The JSON of its data: the part between the colon after the name and the last brace.
    pub fn data(&self) -> &str {
        let field = self.0.get();
        field.split_once(':').map_or(field, |(_, rest)| &rest[..rest.len() - 1])
    }
}

/// The time of an operation apart from its accesses to shared data: drawing it, the loop, calls,
/// comparisons, allocation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The time of an operation that only reads, in nanoseconds.
    pub read_ns: f64,
    /// The time of an operation that updates.
    pub update_ns: f64,
}

impl Beside {
    /// The same for all operations.
    pub const fn each(ns: f64) -> Self {
        Self { read_ns: ns, update_ns: ns }
    }

    /// The time of an operation.
    pub(crate) fn ns(&self, updates: bool) -> f64 {
        if updates { self.update_ns } else { self.read_ns }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What a native slice would have measured.
    pub slice: Slice,
    /// Results that only a simulator has, and the mechanism's counts, by the name of the metric:
    /// shares of time in percent, messages for each section.
    pub sight: BTreeMap<String, f64>,
}

impl Job {
    /// A unique name of the job: 128 bits of its whole content.
    pub fn key(&self) -> String {
        hash(serde_json::to_string(self).expect("a job is plain data").as_bytes())
    }

    /// The kind of a job. Jobs of a kind take about the same time for each simulated second of a
    /// thread.
    pub fn kind(&self) -> String {
        format!("{}/{}", self.program.name().to_lowercase(), self.mechanism)
    }

    /// Simulated seconds of all threads.
    pub fn thread_seconds(&self) -> f64 {
        f64::from(self.threads) * self.measured.as_secs_f64()
    }
}
