//! `manycore bench rmap` and `manycore sim rmap`: threads insert and remove intervals of their own
//! in shared trees, like processes that fork and end; rarely, a thread asks which intervals overlap
//! others.
//!
//! | module | what is in it |
//! |---|---|
//! | `load` | what a thread does, natively and simulated alike |
//! | `mechanism` | the reverse maps that take part, by name |
//! | `any_map`, `bag_workload` | one of them; queues and stacks in their place |
//! | `native`, `simulated` | where threads do it |
//! | `slice` | one short run of one mechanism, natively |
//! | `render` | the results for a person |

mod any_map;
mod bag_workload;
mod command;
mod load;
mod mechanism;
mod native;
mod simulated_command;

mod render;
mod simulated;
mod slice;

use std::time::Duration;

use manycore_measure::{Measurement, Parameter};
use manycore_sim::Model;

use crate::failure::Failure;
use crate::front::Front;
use crate::popularity::Popularity;
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::simulated::{Beside, SimulatorPool};
use crate::worker::{Command, Executor};
use crate::workload::Workload;
pub use load::{Load, Shape};
pub use render::render;

/// The base line: the lock that `manycore run` uses.
pub const BASE: &str = "lock:adaptive";

/// The largest share of additions, in percent: the other operations remove as many items,
/// [`bag_workload::BATCH`] each.
const ADDED_MAX: f64 = 98.0;
const _: () = assert!(ADDED_MAX < (100.0 - ADDED_MAX) * bag_workload::BATCH as f64);

/// The most threads.
const THREADS_MAX: u32 = 4_095;

/// Threads that update reverse maps.
pub(crate) struct ReverseMaps;

impl Workload for ReverseMaps {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<simulated_command::Options>()]
    }

    fn executors(&self, _: &str) -> Vec<Executor> {
        vec![slice::executor()]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![Simulator::of::<simulated::Updates>()]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of mechanisms. The base line takes part in any case.
    pub syncs: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Shares of updates, in percent; the others are reads.
    pub updates: Vec<f64>,
    /// What threads do.
    pub load: Load,
    /// The time that is counted.
    pub duration: Duration,
    /// What an operation takes apart from its accesses, simulated.
    pub beside: Beside,
    /// How often to repeat, natively.
    pub rounds: u32,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            syncs: ["ldu", "ldu-per-core", "ldu-forest", "oplog", "flat-combining"]
                .map(str::to_owned)
                .to_vec(),
            threads: vec![1, 2, 4, 8],
            updates: vec![100.0],
            load: Load::default(),
            duration: Duration::from_millis(30),
            beside: simulated::BESIDE,
            rounds: 31,
            progress: false,
        }
    }
}

impl Options {
    /// The usual ones, for what threads share.
    pub fn of(shape: Shape) -> Self {
        let usual = Self::default();
        match shape {
            Shape::Trees => usual,
            Shape::Queue | Shape::Stack => Self {
                syncs: ["ordered", "ordered-relaxed"].map(str::to_owned).to_vec(),
                load: Load { shape, ..usual.load.clone() },
                ..usual
            },
        }
    }
}

/// Measures on this host, in interleaved rounds. Each mechanism has processes of its own, which
/// `worker` starts.
pub fn run(options: &Options, worker: &Command) -> Result<RunRecords, Failure> {
    options.check(&mechanism::names_here(options.load.shape))?;
    native::run(options, worker)
}

/// Simulates on a machine.
pub fn simulate(
    options: &Options,
    machine: &Model,
    pool: &SimulatorPool,
) -> Result<RunRecords, Failure> {
    options.check(&mechanism::simulated::names(options.load.shape))?;
    Ok(simulated::run(options, machine, pool))
}

/// A mix of operations, and a number of threads.
#[derive(Clone, Copy, Debug)]
struct Point {
    threads: u32,
    update: f64,
}

impl Options {
    /// Whether it makes sense. The names are those of all mechanisms.
    fn check(&self, names: &[String]) -> Result<(), Failure> {
        let load = &self.load;
        let unknown = self.syncs.iter().find(|name| !names.contains(name));
        let faults = [
            unknown.map(|name| {
                let names = names.join(", ");
                let structure = load.shape.structure();
                format!("no mechanism `{name}` for `{structure}`: choose from {names}")
            }),
            self.threads.iter().find(|count| !(1..=THREADS_MAX).contains(count)).map(|count| {
                format!("{count} threads: a thread count is between 1 and {THREADS_MAX}")
            }),
            self.updates
                .iter()
                .find(|share| !(0.0..=100.0).contains(*share))
                .map(|share| format!("an update share of {share}: it is between 0 and 100 %")),
            self.updates
                .iter()
                .find(|share| load.shape != Shape::Trees && !load.reuse && **share > ADDED_MAX)
                .map(|share| {
                    format!(
                        "{share} % of operations add, and what the others take out is less: at most {ADDED_MAX} % for a {}, or reused objects",
                        load.shape.structure(),
                    )
                }),
            (!(1..=10_000).contains(&load.trees))
                .then(|| "the number of trees is not between 1 and 10000".to_owned()),
            (!(1..=100_000).contains(&load.held))
                .then(|| "a thread holds between 1 and 100000 intervals".to_owned()),
            (u64::from(load.initial) * u64::from(load.trees) > 10_000_000)
                .then(|| "over 10 million initial intervals, over all trees".to_owned()),
            (!(0.0..=1e9).contains(&load.outside_ns))
                .then(|| "the time between operations is not between 0 and one second".to_owned()),
            load.popularity.fault(),
            (load.popularity != Popularity::Uniform && load.trees == 1)
                .then(|| "a popularity is one of trees, and there is one: give more".to_owned()),
            (load.operations == Some(0)).then(|| "no operations: give at least 1".to_owned()),
            (self.duration < Duration::from_micros(10))
                .then(|| "less than 10 us cannot be measured".to_owned()),
            (self.rounds == 0).then(|| "no rounds: at least 6 give an interval".to_owned()),
        ];
        match faults.into_iter().flatten().next() {
            Some(fault) => Err(Failure::Usage(fault)),
            None => Ok(()),
        }
    }

    /// The base line first, then the others in the order of the request.
    fn subjects(&self) -> Vec<String> {
        let mut subjects = vec![BASE.to_owned()];
        for name in &self.syncs {
            if !subjects.contains(name) {
                subjects.push(name.clone());
            }
        }
        subjects
    }

    fn points(&self) -> Vec<Point> {
        let of_share = |update: &f64| {
            self.threads
                .iter()
                .map(|threads| Point { threads: *threads, update: *update })
                .collect::<Vec<_>>()
        };
        self.updates.iter().flat_map(of_share).collect()
    }

    /// What both kinds of records say.
    fn describe(&self, mut record: Measurement, point: Point) -> Measurement {
        record.structure = Some(self.load.shape.structure().to_owned());
        record.threads = point.threads;
        record.update = Some(point.update);
        record.seed = Some(self.load.seed);
        let mut parameter = |name: &str, value: Parameter| {
            record.parameters.insert(name.to_owned(), value);
        };
        parameter("trees", f64::from(self.load.trees).into());
        parameter("initial", f64::from(self.load.initial).into());
        parameter("held", f64::from(self.load.held).into());
        parameter("objects", if self.load.reuse { "reused" } else { "fresh" }.into());
        parameter("outside_ns", self.load.outside_ns.into());
        parameter("tend_ns", (self.load.tend.as_nanos() as f64).into());
        parameter("zipf", self.load.popularity.exponent().into());
        match self.load.operations {
            Some(count) => parameter("operations", (count as f64).into()),
            None => parameter("duration_ns", (self.duration.as_nanos() as f64).into()),
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::slice::{Settings, run as run_slice};
    use super::*;

    #[test]
    fn bad_questions_are_named() {
        let refuse =
            |options: Options| match options.check(&mechanism::names_here(options.load.shape)) {
                Err(Failure::Usage(fault)) => fault,
                other => panic!("{other:?}"),
            };
        let unknown = refuse(Options { syncs: vec!["ldx".into()], ..Options::default() });
        assert!(unknown.contains("ldx") && unknown.contains("ldu-forest"), "{unknown}");
        for wrong in [
            Options { threads: vec![0], ..Options::default() },
            Options { updates: vec![101.0], ..Options::default() },
            Options { load: Load { trees: 0, ..Load::default() }, ..Options::default() },
            Options { load: Load { held: 0, ..Load::default() }, ..Options::default() },
            Options { rounds: 0, ..Options::default() },
            Options { load: Load { shape: Shape::Queue, ..Load::default() }, ..Options::default() },
        ] {
            refuse(wrong);
        }
    }

    /// What a mechanism that drops updates is told.
    #[test]
    fn what_is_lost_is_seen() {
        let load = Load { trees: 2, initial: 50, ..Load::default() };
        let map = mechanism::make_here("ldu", Shape::Trees, 2).unwrap();
        let filled = load.fill(&*map);
        assert_eq!(load.verify(&*map), Ok(()));
        let mut handle = map.handle(1, false);
        handle.update(1, manycore_traits::Interval { first: 3, order: 7, last: 5 });
        let fault = load.verify(&*map).unwrap_err();
        assert!(fault.starts_with("tree 1 has 51 intervals, and should have 50"), "{fault}");
        drop((handle, filled));
        let fault = load.verify(&*map).unwrap_err();
        assert!(fault.starts_with("tree 0 has 0 intervals, and should have 50"), "{fault}");
    }

    /// Every mechanism, natively, for a moment.
    #[test]
    fn every_mechanism_runs() {
        let shapes = [Shape::Trees, Shape::Queue, Shape::Stack];
        for (reuse, shape) in
            [false, true].into_iter().flat_map(|reuse| shapes.map(|shape| (reuse, shape)))
        {
            let names = mechanism::names_here(shape);
            for (mechanism, operations) in names
                .into_iter()
                .filter(|name| !name.starts_with("lock:") || name == BASE)
                .flat_map(|name| [(name.clone(), None), (name, Some(500))])
            {
                let load =
                    Load { shape, trees: 2, initial: 50, reuse, operations, ..Load::default() };
                let round = run_slice(&Settings {
                    mechanism: mechanism.clone(),
                    threads: 2,
                    update: 75.0,
                    load: Load { popularity: Popularity::Zipf(1.0), ..load },
                    duration: Duration::from_micros(300),
                    iterations: 0,
                });
                let round = round.unwrap_or_else(|fault| panic!("{mechanism}: {fault}"));
                assert!(round.slice.elapsed_ns > 0.0);
                match operations {
                    Some(count) => assert_eq!(round.slice.counts, [count; 2], "{mechanism}"),
                    None => assert!(round.slice.throughput() > 0.0),
                }
            }
        }
    }
}
