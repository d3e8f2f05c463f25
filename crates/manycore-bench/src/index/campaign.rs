//! Mechanisms at points, in rounds of slices of indexes.

use super::Options;
use super::slice::{Settings, Slice};
use super::task::{Records, Task};
use crate::campaign::{self, Campaign, Contest, values};
use crate::failure::Failure;
use crate::threads::ThreadSettings;
use crate::worker::{Subject, Through, Worker};

/// What was measured: the candidates are the names of mechanisms.
pub(crate) type Samples = campaign::Samples<Task, String, Slice>;

/// Runs these mechanisms at these points, as the options say.
pub(crate) fn run(
    options: &Options,
    points: Vec<Task>,
    syncs: Vec<String>,
) -> Result<Samples, Failure> {
    let Options { rounds, progress, .. } = *options;
    let seed = options.workload.records.seed;
    Campaign { rounds, seed, progress }.run(&Indexes(options), points, syncs)
}

struct Indexes<'a>(&'a Options);

impl Contest for Indexes<'_> {
    type Point = Task;
    type Candidate = String;
    type Slice = Settings;

    fn start(&self, sync: &String) -> Result<Worker, Failure> {
        let lock = sync.clone();
        let subject = Subject { lock, through: Through::Native, shared: false };
        Worker::start(&self.0.worker, &[], &subject)
    }

    fn slice(&self, point: &Task, sync: &String, round: u32) -> Settings {
        let Options { slice, operations, pinning, .. } = *self.0;
        let seed = point.records.seed.wrapping_add(u64::from(round));
        Settings {
            task: Task {
                sync: sync.clone(),
                records: Records { seed, ..point.records.clone() },
                ..point.clone()
            },
            threads: ThreadSettings::new(point.threads, slice, operations, pinning),
        }
    }

    fn in_words(&self, point: &Task, sync: &String) -> String {
        let Task { threads, records, mix, .. } = point;
        let filling = if records.is_many() {
            format!(" ({} records to begin with)", records.initial)
        } else {
            String::new()
        };
        format!("{sync}, {mix}, {threads} threads{filling}")
    }
}

impl Samples {
    /// Operations a second of a mechanism at a point, by round; `None` if it failed or is not
    /// there.
    pub fn throughput(&self, point: usize, sync: &str) -> Option<Vec<f64>> {
        let sync = self.candidates.iter().position(|known| known == sync)?;
        Some(values(self.at(point, sync)?, |slice| slice.used.throughput()))
    }
}
