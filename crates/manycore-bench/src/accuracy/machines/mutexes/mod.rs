//! The set `mutexes`: four mutexes on real machines with 12 to 64 CPUs beside simulations of models
//! of these.
//!
//! The models' constants come from elsewhere. One number is read off the table: what a section
//! computes, of each lock, so that one task takes as long as measured; those points are shown, and
//! not judged.

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

/// What it is called.
pub const NAME: &str = "mutexes";

/// What to compare.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of models; all that there are measurements of if there are none.
    pub machines: Vec<String>,
    /// Numbers of tasks; all if there are none.
    pub tasks: Vec<u32>,
    /// Acquisitions that are simulated of each 50,000.
    pub acquisitions: u32,
    /// The seed of every random choice.
    pub seed: u64,
    /// Who simulates.
    pub pool: SimulatorPool,
}

impl Options {
    /// Everything, as it was measured.
    pub fn new(pool: SimulatorPool) -> Self {
        Self { machines: Vec::new(), tasks: Vec::new(), acquisitions: ACQUISITIONS, seed: 1, pool }
    }
}

/// A measured point and a simulated one.
#[derive(Clone, Debug)]
struct Compared {
    published: Published,
    /// Wall time of an acquisition, in nanoseconds.
    simulated: f64,
}

impl Compared {
    /// Whether it is judged. The length of a section is read off the point with one task.
    fn counts(&self) -> bool {
        self.published.tasks > 1
    }

    /// By what factor the simulated time is off, either way.
    fn factor(&self) -> f64 {
        let ratio = self.simulated / self.published.ns;
        ratio.max(1.0 / ratio)
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Published and simulated records.
    pub measurements: Vec<Measurement>,
    /// What is asked of the simulator.
    pub claims: Vec<Claim>,
    /// What could not be compared, a line each.
    pub failures: Vec<String>,
    compared: Vec<Compared>,
}

/// Simulates and compares.
pub fn run(options: &Options) -> Result<Found, Failure> {
    let all = options.chosen()?;
    let models = options.models()?;
    let mut found = Found {
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
                let pause = pause.expect("every model has one");
                (pause.value, pause.high) = (cycles, cycles);
            }
            Ok(model)
        };
        MACHINES.into_iter().map(find).collect()
    }

    /// What a section computes at each point: what one task takes, less what that takes in a
    /// simulation if it computes nothing.
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
                Failure::Failed(format!("{}: nothing is published of one task", name()))
            })?;
            let overhead = overhead.map_err(Failure::Failed)?;
            Ok((alone.ns - per_acquisition(&overhead)).max(0.0))
        };
        all.iter().zip(overheads).map(section).collect()
    }

    fn job(&self, point: &Published, tasks: u32, section_ns: f64, models: &[Model]) -> Job {
        let model = models.iter().find(|model| model.name == point.model).expect("all are there");
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

/// Whether there are measurements of a machine of this name.
pub(super) fn knows(name: &str) -> bool {
    MACHINES.iter().any(|(_, model)| is_called(model, name))
}

/// Whether a model is meant, which may be called without its ending.
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
