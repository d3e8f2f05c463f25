//! Mechanisms at points, in rounds of slices of sets.

use std::time::Duration;

use super::slice::Bound;
use super::{Keys, Options, Settings, Slice, Task, peers};
use crate::campaign::{self, Campaign, Contest, values};
use crate::cpus;
use crate::failure::Failure;
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
        let cpus = cpus::allowed().len() as u32;
        // Every thread should have its turn on a CPU a few times, at some milliseconds each.
        let measured = self.0.slice * point.threads.div_ceil(3 * cpus);
        let seed = point.keys.seed.wrapping_add(u64::from(round));
        Settings {
            task: Task {
                sync: sync.clone(),
                keys: Keys { seed, ..point.keys.clone() },
                ..point.clone()
            },
            bound: self.0.operations.map_or(Bound::Time(measured), Bound::Operations),
            pinning: self.0.pinning,
            drain: measured.max(Duration::from_secs(10)),
            sample: SAMPLE,
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

/// Timing an operation takes some 20 ns, as long as a short one: so seldom that it costs a few
/// percent at most.
const SAMPLE: u32 = 31;

impl Samples {
    /// Operations a second of a mechanism at a point, by round; `None` if it failed or is not
    /// there.
    pub fn throughput(&self, point: usize, sync: &str) -> Option<Vec<f64>> {
        let sync = self.candidates.iter().position(|known| known == sync)?;
        Some(values(self.at(point, sync)?, Slice::throughput))
    }
}
