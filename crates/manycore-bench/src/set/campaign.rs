//! Mechanisms at points, in rounds of slices of sets.

use super::{Keys, Options, Settings, Slice, Task, peers};
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
    let seed = options.workload.keys.seed;
    Campaign { rounds, seed, progress }.run(&Sets(options), points, syncs)
}

struct Sets<'a>(&'a Options);

impl Contest for Sets<'_> {
    type Point = Task;
    type Candidate = String;
    type Slice = Settings;

    fn start(&self, sync: &String) -> Result<Worker, Failure> {
        let Options { worker, foreign, .. } = self.0;
        let command = match peers::is_foreign(sync) {
            true => foreign.as_ref().unwrap_or(worker),
            false => worker,
        };
        let lock = sync.clone();
        Worker::start(command, &[], &Subject { lock, through: Through::Native, shared: false })
    }

    fn slice(&self, point: &Task, sync: &String, round: u32) -> Settings {
        let Options { slice, operations, pinning, .. } = *self.0;
        let seed = point.keys.seed.wrapping_add(u64::from(round));
        Settings {
            task: Task {
                sync: sync.clone(),
                keys: Keys { seed, ..point.keys.clone() },
                ..point.clone()
            },
            threads: ThreadSettings::new(point.threads, slice, operations, pinning),
        }
    }

    fn in_words(&self, point: &Task, sync: &String) -> String {
        let Task { threads, keys, .. } = point;
        let filling = if keys.is_many() {
            format!(" ({} keys to begin with)", keys.initial)
        } else {
            String::new()
        };
        format!("{sync}, {threads} threads{filling}")
    }
}

impl Samples {
    /// Operations a second of a mechanism at a point, by round; `None` if it failed or is not
    /// there.
    pub fn throughput(&self, point: usize, sync: &str) -> Option<Vec<f64>> {
        let sync = self.candidates.iter().position(|known| known == sync)?;
        Some(values(self.at(point, sync)?, Slice::throughput))
    }
}
