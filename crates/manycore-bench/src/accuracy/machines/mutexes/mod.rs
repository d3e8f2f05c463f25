//! The set `mutexes`: published times of four mutexes on real machines with 12 to 64 CPUs, beside
//! simulations of models of these machines.
//!
//! The models' constants come from other measurements. The study takes one number for each lock
//! from the published table: the computation in a section, so that one task takes as long as
//! published. The results show the points with one task, and do not judge them.

pub(crate) mod batch;
mod judge;
mod published;
mod render;

use std::time::Duration;

use manycore_measure::{Claim, Measurement, Mechanism, Provenance};
use manycore_sim::{Model, model};

use self::published::{ACQUISITIONS, ENTRIES, MACHINES, PAUSES_BY_WFE, Published};
pub use self::render::render;
use crate::accuracy::machines::mutexes::batch::Batch;
use crate::failure::Failure;
use crate::simulated::{Answer, Job, Program, SimulatorPool};
use crate::slice::Pinning;

/// The set's name.
pub const NAME: &str = "mutexes";

/// The study's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of models. None: all models with published measurements.
    pub machines: Vec<String>,
    /// Numbers of tasks. None: all.
    pub tasks: Vec<u32>,
    /// How many of each 50,000 acquisitions are simulated.
    pub acquisitions: u32,
    /// The seed of every random choice.
    pub seed: u64,
    /// The pool that runs simulations.
    pub pool: SimulatorPool,
}

impl Options {
    /// The published study in full.
    pub fn new(pool: SimulatorPool) -> Self {
        Self { machines: Vec::new(), tasks: Vec::new(), acquisitions: ACQUISITIONS, seed: 1, pool }
    }
}

/// A published point and its simulated counterpart.
#[derive(Clone, Debug)]
struct Compared {
    published: Published,
    /// Wall time of an acquisition, in nanoseconds.
    simulated: f64,
}

impl Compared {
    /// Whether the point is judged. The one with a single task is not: it gives the length of a
    /// section.
    fn counts(&self) -> bool {
        self.published.tasks > 1
    }

    /// The ratio of the simulated and the published time, inverted if it is less than 1.
    fn factor(&self) -> f64 {
        let ratio = self.simulated / self.published.ns;
        ratio.max(1.0 / ratio)
    }
}

/// The results of the study.
#[derive(Clone, Debug)]
pub struct MutexAccuracy {
    /// Published and simulated records.
    pub measurements: Vec<Measurement>,
    /// What the study claims about the simulator.
    pub claims: Vec<Claim>,
    /// A line for each point that could not be compared.
    pub failures: Vec<String>,
    compared: Vec<Compared>,
}

/// Runs the study.
pub fn run(options: &Options) -> Result<MutexAccuracy, Failure> {
    let all = options.chosen()?;
    let models = options.models()?;
    let mut found = MutexAccuracy {
        measurements: Vec::new(),
        claims: Vec::new(),
        failures: Vec::new(),
        compared: Vec::new(),
    };
    let sections = options.sections(&all, &models)?;
    let jobs: Vec<Job> = all
        .iter()
        .zip(&sections)
        .map(|(point, section)| options.job(point, point.tasks, *section, &models))
        .collect();
    for (published, answer) in all.into_iter().zip(options.pool.run(&jobs)) {
        match answer.map(|finding| per_acquisition(&finding)) {
            Ok(simulated) => found.compared.push(Compared { published, simulated }),
            Err(error) => found.failures.push(format!(
                "{}, {}, {} tasks: {error}",
                published.model, published.lock, published.tasks
            )),
        }
    }
    found.measurements = found.compared.iter().flat_map(|one| records(one, options)).collect();
    found.claims = judge::claims(&found.compared);
    Ok(found)
}

/// Wall time of an acquisition, in nanoseconds.
fn per_acquisition(finding: &crate::simulated::Finding) -> f64 {
    finding.slice.elapsed_ns / finding.slice.counts.iter().sum::<u64>().max(1) as f64
}

impl Options {
    fn chosen(&self) -> Result<Vec<Published>, Failure> {
        let known = |name: &String| MACHINES.iter().any(|(_, model)| is_called(model, name));
        if let Some(unknown) = self.machines.iter().find(|name| !known(name)) {
            let names = MACHINES.map(|(_, model)| model).join(", ");
            return Err(Failure::Usage(format!(
                "nothing is published of `{unknown}`: choose from {names}"
            )));
        }
        let mut all = published::mutexes()?;
        let asked = |one: &Published| {
            let machines = &self.machines;
            let machine = machines.is_empty() || machines.iter().any(|m| is_called(one.model, m));
            machine && (self.tasks.is_empty() || self.tasks.contains(&one.tasks) || one.tasks == 1)
        };
        all.retain(asked);
        Ok(all)
    }

    fn models(&self) -> Result<Vec<Model>, Failure> {
        let find = |(_, name): (&str, &str)| {
            let mut model =
                model::find(name).map_err(|problem| Failure::Failed(problem.to_string()))?;
            let (pauses_by_wfe, ns) = PAUSES_BY_WFE;
            if name == pauses_by_wfe {
                let cycles = (ns * model.machine().core.ghz).round();
                let pause = model.constants.iter_mut().find(|c| c.field.path == "core.pause");
                let pause = pause.expect("every model has this constant");
                (pause.value, pause.high) = (cycles, cycles);
            }
            Ok(model)
        };
        MACHINES.into_iter().map(find).collect()
    }

    /// The computation in a section, for each point: the published time of one task, less the
    /// simulated time of a task that computes nothing.
    fn sections(&self, all: &[Published], models: &[Model]) -> Result<Vec<f64>, Failure> {
        let alone: Vec<Job> = all.iter().map(|point| self.job(point, 1, 0.0, models)).collect();
        let overheads = self.pool.run(&alone);
        let section = |(point, overhead): (&Published, Answer)| {
            let is_alone = |other: &&Published| {
                (other.model, &other.series, other.lock, other.tasks)
                    == (point.model, &point.series, point.lock, 1)
            };
            let name = || format!("{}, {}, {}", point.model, point.series, point.lock);
            let alone = all.iter().find(is_alone).ok_or_else(|| {
                Failure::Failed(format!("{}: there is no published time of one task", name()))
            })?;
            let overhead = overhead.map_err(Failure::Failed)?;
            Ok((alone.ns - per_acquisition(&overhead)).max(0.0))
        };
        all.iter().zip(overheads).map(section).collect()
    }

    fn job(&self, point: &Published, tasks: u32, section_ns: f64, models: &[Model]) -> Job {
        let model = models
            .iter()
            .find(|model| model.name == point.model)
            .expect("the models of all points were loaded");
        Job {
            machine: model.to_toml(),
            cpus: None,
            mechanism: point.lock.to_owned(),
            // The pool has a thread for each CPU.
            threads: tasks.min(model.machine().topology.cpus()),
            program: Program::of(&Batch {
                acquisitions: self.acquisitions,
                tasks,
                section_ns,
                entries: ENTRIES,
            }),
            measured: Duration::from_nanos((point.ns * f64::from(self.acquisitions)) as u64),
            pinning: Pinning::None,
            seed: self.seed,
            every_turn: false,
            patient: false,
        }
    }
}

/// Whether there are measurements of a machine with this name.
pub(super) fn knows(name: &str) -> bool {
    MACHINES.iter().any(|(_, model)| is_called(model, name))
}

/// Whether a name means a model. It may omit the model's ending.
fn is_called(model: &str, name: &str) -> bool {
    model == name || model.strip_suffix("-like") == Some(name)
}

/// The published record of a point, and the simulated one.
fn records(one: &Compared, options: &Options) -> [Measurement; 2] {
    let point = &one.published;
    let record = |value: f64, provenance| {
        let lock = Mechanism::Lock(point.lock.to_owned());
        let mut record = Measurement::new("batch", lock, "ns", value);
        record.threads = point.tasks;
        record.provenance = provenance;
        record.machine = point.model.to_owned();
        record.parameters.insert("series".into(), point.series.as_str().into());
        record
    };
    let mut simulated = record(one.simulated, Provenance::Simulated);
    simulated.seed = Some(options.seed);
    simulated.parameters.insert("acquisitions".into(), f64::from(options.acquisitions).into());
    [record(point.ns, Provenance::Published), simulated]
}
