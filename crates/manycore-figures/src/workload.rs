//! What a figure simulates.

use std::time::Duration;

use manycore_bench::rmap::{self, Load};
use manycore_bench::set::simulated as set;
use manycore_bench::set::{Keys, Popularity, TaskGrid as Sets};
use manycore_bench::simulated::SimulatorPool;
use manycore_bench::{Failure, RunRecords};
use manycore_bench::{db, fs, kernel, syscall};
use manycore_measure::Measurement;
use manycore_sim::Model;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::field::{Coordinate, Field};

/// A workload of `manycore sim`, with the figure's settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Threads that use a set.
    Set(Set),
    /// A database whose threads contend for latches.
    Db(Db),
    /// Threads that update reverse maps.
    Rmap(Rmap),
    /// Threads that use a file system.
    Fs(FileSystem),
    /// Pairs of calls on a file system, and the lines that they share.
    Pairs(Pairs),
    /// A server, and where its system calls are executed.
    Syscall(Syscall),
    /// An application whose calls take several locks of the kernel.
    Kernel(Kernel),
}

/// As `manycore sim set` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    structure: String,
    sync: Vec<String>,
    threads: Vec<u32>,
    update: Vec<f64>,
    initial: u64,
    range: Option<u64>,
    buckets: Option<u64>,
    #[serde(default = "alike")]
    zipf: Vec<f64>,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

/// A time as people write it: `300us`.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    humantime::parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn alike() -> Vec<f64> {
    vec![0.0]
}

/// As `manycore sim db` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Db {
    locks: Vec<String>,
    cpus: Vec<u32>,
    terminals: Vec<u32>,
    #[serde(default = "alike")]
    update: Vec<f64>,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

/// As `manycore sim rmap` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rmap {
    sync: Vec<String>,
    threads: Vec<u32>,
    update: Vec<f64>,
    trees: u32,
    initial: u32,
    held: u32,
    reuse: bool,
    #[serde(deserialize_with = "time")]
    outside: Duration,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

/// As `manycore sim fs` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    sync: Vec<String>,
    mix: Vec<String>,
    threads: Vec<u32>,
    chains: usize,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

/// Calls on names of their own in one directory, each beside each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    sync: Vec<String>,
    call: Vec<String>,
    chains: usize,
}

/// As `manycore sim syscall` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Syscall {
    clients: Vec<u32>,
    #[serde(deserialize_with = "time")]
    page: Duration,
    #[serde(deserialize_with = "time")]
    round_trip: Duration,
    interrupt_cpus: u32,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

/// As `manycore sim kernel` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    application: kernel::Application,
    threads: Vec<u32>,
    #[serde(deserialize_with = "time")]
    compute: Duration,
    #[serde(deserialize_with = "time")]
    duration: Duration,
}

impl Workload {
    /// The coordinates of its measurements in a dimension; none if it does not have that dimension.
    pub(crate) fn places(&self, field: Field) -> Vec<Coordinate> {
        let names = |names: &[String]| names.iter().cloned().map(Coordinate::Name).collect();
        let counts =
            |counts: &[u32]| counts.iter().map(|n| Coordinate::Number(f64::from(*n))).collect();
        let numbers = |numbers: &[f64]| numbers.iter().copied().map(Coordinate::Number).collect();
        match (self, field) {
            (Self::Set(set), Field::Series) => names(&set.sync),
            (Self::Set(set), Field::Threads) => counts(&set.threads),
            (Self::Set(set), Field::Update) => numbers(&set.update),
            (Self::Set(set), Field::Zipf) => numbers(&set.zipf),
            (Self::Db(db), Field::Series) => names(&db.locks),
            (Self::Db(db), Field::Terminals) => counts(&db.terminals),
            (Self::Db(db), Field::Cpus) => counts(&db.cpus),
            (Self::Db(db), Field::Update) => numbers(&db.update),
            (Self::Rmap(rmap), Field::Series) => names(&rmap.sync),
            (Self::Rmap(rmap), Field::Threads) => counts(&rmap.threads),
            (Self::Rmap(rmap), Field::Update) => numbers(&rmap.update),
            (Self::Fs(fs), Field::Series) => names(&fs.sync),
            (Self::Fs(fs), Field::Mix) => names(&fs.mix),
            (Self::Fs(fs), Field::Threads) => counts(&fs.threads),
            (Self::Pairs(pairs), Field::Series) => names(&pairs.sync),
            (Self::Pairs(pairs), Field::Mix) => names(&fs::pairs::names(&pairs.call)),
            (Self::Syscall(_), Field::Series) => {
                names(&[syscall::IN_PLACE.to_owned(), syscall::THREAD.to_owned()])
            }
            (Self::Syscall(server), Field::Clients) => counts(&server.clients),
            (Self::Kernel(kernel), Field::Series) => {
                let series = kernel.application.series().iter();
                series.map(|name| Coordinate::Name((*name).to_owned())).collect()
            }
            (Self::Kernel(kernel), Field::Threads) => counts(&kernel.threads),
            _ => Vec::new(),
        }
    }

    /// Whether it has measurements at a place.
    pub(crate) fn has(&self, field: Field, place: &Coordinate) -> bool {
        self.places(field).contains(place)
    }

    /// Simulates all points on a machine. The error concerns the figure's requests, or failed
    /// simulations.
    pub(crate) fn run(
        &self,
        machine: &Model,
        pool: &SimulatorPool,
    ) -> Result<Vec<Measurement>, Failure> {
        let found = match self {
            Self::Set(set) => set.run(machine, pool)?,
            Self::Db(db) => db.run(machine, pool)?,
            Self::Rmap(rmap) => rmap.run(machine, pool)?,
            Self::Fs(fs) => fs.run(machine, pool)?,
            Self::Pairs(pairs) => pairs.run(machine, pool)?,
            Self::Syscall(server) => server.run(machine, pool)?,
            Self::Kernel(kernel) => kernel.run(machine, pool)?,
        };
        match found.failures.first() {
            None => Ok(found.measurements),
            Some(first) => Err(Failure::Failed(first.clone())),
        }
    }
}

impl Set {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        let mut found = RunRecords { measurements: Vec::new(), failures: Vec::new() };
        for exponent in &self.zipf {
            let usual = Keys::of(self.initial);
            let popularity = match *exponent {
                0.0 => Popularity::Uniform,
                exponent => Popularity::Zipf(exponent),
            };
            let settings = set::Options {
                workload: Sets {
                    structure: self.structure.clone(),
                    syncs: self.sync.clone(),
                    threads: self.threads.clone(),
                    updates: self.update.clone(),
                    keys: Keys {
                        range: self.range.unwrap_or(usual.range),
                        buckets: self.buckets.unwrap_or(usual.buckets),
                        popularity,
                        ..usual
                    },
                },
                duration: self.duration,
                ..set::Options::new(machine.clone(), pool.clone())
            };
            let more = set::run(&settings)?;
            found.measurements.extend(more.measurements);
            found.failures.extend(more.failures);
        }
        Ok(found)
    }
}

impl FileSystem {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        let usual = fs::simulated::Options::new(machine.clone(), pool.clone());
        fs::simulated::run(&fs::simulated::Options {
            workload: fs::TaskGrid {
                syncs: self.sync.clone(),
                workloads: self.mix.clone(),
                threads: self.threads.clone(),
                chains: self.chains,
                ..fs::TaskGrid::default()
            },
            duration: self.duration,
            ..usual
        })
    }
}

impl Pairs {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        fs::pairs::run(&fs::pairs::Options {
            machine: machine.clone(),
            syncs: self.sync.clone(),
            calls: self.call.clone(),
            chains: self.chains,
            pool: pool.clone(),
        })
    }
}

impl Db {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        db::run(&db::Options {
            locks: self.locks.clone(),
            cpus: self.cpus.clone(),
            terminals: self.terminals.clone(),
            updates: self.update.clone(),
            duration: self.duration,
            ..db::Options::new(machine.clone(), pool.clone())
        })
    }
}

impl Syscall {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        let usual = syscall::Options::new(machine.clone(), pool.clone());
        syscall::run(&syscall::Options {
            clients: self.clients.clone(),
            assumed: syscall::Assumptions {
                page_ns: self.page.as_nanos() as f64,
                round_trip_ns: self.round_trip.as_nanos() as f64,
                interrupt_cpus: self.interrupt_cpus,
                ..usual.assumed
            },
            duration: self.duration,
            ..usual
        })
    }
}

impl Kernel {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        kernel::run(&kernel::Options {
            threads: self.threads.clone(),
            compute: self.compute,
            duration: self.duration,
            ..kernel::Options::new(machine.clone(), self.application, pool.clone())
        })
    }
}

impl Rmap {
    fn run(&self, machine: &Model, pool: &SimulatorPool) -> Result<RunRecords, Failure> {
        let settings = rmap::Options {
            syncs: self.sync.clone(),
            threads: self.threads.clone(),
            updates: self.update.clone(),
            load: Load {
                trees: self.trees,
                initial: self.initial,
                held: self.held,
                reuse: self.reuse,
                outside_ns: self.outside.as_nanos() as f64,
                ..Load::default()
            },
            duration: self.duration,
            ..rmap::Options::default()
        };
        let mut found = rmap::simulate(&settings, machine, pool)?;
        // The base line is simulated even if the figure does not contain it.
        found
            .measurements
            .retain(|record| self.sync.iter().any(|sync| sync == record.mechanism.name()));
        Ok(found)
    }
}
