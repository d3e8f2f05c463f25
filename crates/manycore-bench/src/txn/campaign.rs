//! Mechanisms at points, in rounds of slices of databases.

use super::Options;
use super::slice::{Settings, Slice};
use super::task::Task;
use crate::campaign::{self, Campaign, Contest};
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
    let seed = options.workload.seed;
    Campaign { rounds, seed, progress }.run(&Databases(options), points, syncs)
}

struct Databases<'a>(&'a Options);

impl Contest for Databases<'_> {
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
        let seed = point.seed.wrapping_add(u64::from(round));
        Settings {
            task: Task { sync: sync.clone(), seed, ..point.clone() },
            threads: ThreadSettings::new(point.threads, slice, operations, pinning),
        }
    }

    fn in_words(&self, point: &Task, sync: &String) -> String {
        let Task { threads, mix, .. } = point;
        format!("{sync}, {mix}, {threads} threads ({} rows to begin with)", point.rows())
    }
}
