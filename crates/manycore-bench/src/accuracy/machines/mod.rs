//! `manycore sim accuracy --of machines`: published measurements of real machines beside
//! simulations of models of these machines.
//!
//! | module | what is in it |
//! |---|---|
//! | `set`, `library` | published points with where they come from, and the sets that there are |
//! | `measure` | what the values are |
//! | `experiment`, `programs` | what is simulated in the place of each |
//! | `factor`, `tally` | factors, orders and knees, and how many of them agree |
//! | `render`, `page`, `records` | what came out, for a person and for programs |
//! | `mutexes` | the set whose sections are read off its own points, which is judged by time |
//!
//! The models' constants do not come from the judged points. They come from hand-overs between
//! cores and from bursts on lines: the sets that `calibrates` marks.

mod experiment;
mod factor;
mod library;
mod measure;
pub mod mutexes;
mod page;
pub(crate) mod programs;
mod records;
mod render;
mod set;
mod tally;

use std::collections::BTreeMap;

use manycore_measure::{Claim, Measurement};
use manycore_sim::{Model, model};

use self::experiment::Asked;
use self::measure::Measure;
pub use self::page::page;
pub use self::render::render;
pub use self::set::Kind;
use self::set::{Grade, Point, PublishedSet};
use crate::failure::Failure;
use crate::simulated::{Finding, Job, SimulatorPool};

/// The study's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of sets, or paths of their descriptions. None: all sets that come with manycore.
    pub sets: Vec<String>,
    /// Names of measured machines or of their models. None: all machines.
    pub machines: Vec<String>,
    /// Kinds of sets. None: all kinds.
    pub kinds: Vec<Kind>,
    /// Numbers of threads. None: the numbers that the sets name.
    pub threads: Vec<u32>,
    /// How many cases and numbers of threads are simulated.
    pub extent: Extent,
    /// The seed of every random choice.
    pub seed: u64,
    /// The pool that runs simulations.
    pub pool: SimulatorPool,
}

impl Options {
    /// All sets, at the points that they name.
    pub fn new(pool: SimulatorPool) -> Self {
        Self {
            sets: Vec::new(),
            machines: Vec::new(),
            kinds: Vec::new(),
            threads: Vec::new(),
            extent: Extent::Usual,
            seed: 1,
            pool,
        }
    }
}

/// How many of the points are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// One case of each set, with one thread and a few threads: a quick test that the study works.
    Quick,
    /// The cases and numbers of threads that the sets name for this.
    Usual,
    /// Every case, and every number of threads for which the machine has CPUs.
    Full,
}

/// A published point and its simulated counterpart.
#[derive(Clone, Debug)]
struct Compared {
    /// The index of its set.
    set: usize,
    kind: Kind,
    /// By which factor the simulation may differ.
    band: f64,
    /// Whether the point is judged. Points that calibrate a model, or that are not reliable, are
    /// not.
    judged: bool,
    point: Point,
    /// The published value as a rate.
    published: f64,
    simulated: f64,
    /// The simulated value in the unit of the published one.
    simulated_value: f64,
    /// Where simulated time went, and how far lines moved.
    sight: BTreeMap<String, f64>,
}

impl Compared {
    fn published(&self) -> f64 {
        self.published
    }

    fn simulated(&self) -> f64 {
        self.simulated
    }
}

/// The results of the study.
#[derive(Clone, Debug)]
pub struct PublishedAccuracy {
    /// Published and simulated records.
    pub measurements: Vec<Measurement>,
    /// What the study claims about the simulator.
    pub claims: Vec<Claim>,
    /// A line for each point that could not be compared.
    pub failures: Vec<String>,
    sets: Vec<PublishedSet>,
    compared: Vec<Compared>,
    /// The results of the set that is judged by time.
    mutexes: Option<mutexes::MutexAccuracy>,
}

/// Names of all sets.
pub fn names() -> Vec<&'static str> {
    library::names().chain([mutexes::NAME]).collect()
}

/// Runs the study.
pub fn run(options: &Options) -> Result<PublishedAccuracy, Failure> {
    let sets = library::sets(&options.sets)?;
    options.check(&sets)?;
    let asked = options.chosen(&sets);
    let mutexes = options.mutexes().map(|options| mutexes::run(&options)).transpose()?;
    if asked.is_empty() && mutexes.is_none() {
        return Err(Failure::Usage(
            "no published point is left: take away --set, --machine, --kind or --threads".into(),
        ));
    }
    let models = models(&sets)?;
    let job = |(set, point): &(usize, Point)| options.job(&sets[*set], point, &models);
    let jobs: Vec<Job> = asked.iter().map(job).collect();
    let (mut compared, mut failures) = (Vec::new(), Vec::new());
    for ((number, point), answer) in asked.into_iter().zip(options.pool.run(&jobs)) {
        let set = &sets[number];
        match answer {
            Ok(finding) => compared.push(of_finding(number, set, point, &finding, &models)),
            Err(error) => failures.push(format!("{}: {error}", set.in_words(&point))),
        }
    }
    let mut found = PublishedAccuracy {
        measurements: Vec::new(),
        claims: Vec::new(),
        failures,
        sets,
        compared,
        mutexes,
    };
    found.measurements = records::of(&found, options.seed);
    found.claims = tally::claims(&found);
    if let Some(mutexes) = &found.mutexes {
        found.measurements.extend(mutexes.measurements.iter().cloned());
        found.claims.extend(mutexes.claims.iter().cloned());
        found.failures.extend(mutexes.failures.iter().cloned());
    }
    Ok(found)
}

fn of_finding(
    number: usize,
    set: &PublishedSet,
    point: Point,
    finding: &Finding,
    models: &BTreeMap<String, Model>,
) -> Compared {
    let ghz = models[&set.machines[point.machine].model].machine().core.ghz;
    let run = &set.cases[point.case].run;
    let value = run.value(finding, set.measure, point.threads, ghz);
    let value = if set.measure == Measure::Rate { value / set.scale } else { value };
    Compared {
        set: number,
        kind: set.kind,
        band: set.grade.band(),
        judged: !set.calibrates && set.grade != Grade::C,
        published: set.measure.rate(point.value, point.threads),
        simulated: set.measure.rate(value, point.threads),
        simulated_value: value,
        sight: finding.sight.clone(),
        point,
    }
}

/// The models of all measured machines, by their names.
fn models(sets: &[PublishedSet]) -> Result<BTreeMap<String, Model>, Failure> {
    let names = sets.iter().flat_map(|set| &set.machines).map(|machine| &machine.model);
    let find = |name: &String| {
        let model = model::find(name).map_err(|problem| Failure::Failed(problem.to_string()))?;
        Ok((name.clone(), model))
    };
    names.map(find).collect()
}

impl Options {
    /// The requested points for which there is a model and a simulation, each with the index of its
    /// set.
    fn chosen(&self, sets: &[PublishedSet]) -> Vec<(usize, Point)> {
        let of_set = |(number, set)| {
            let points = PublishedSet::points(set).filter(|point| self.is_chosen(set, point));
            points.map(move |point| (number, point.clone())).collect::<Vec<_>>()
        };
        sets.iter().enumerate().flat_map(of_set).collect()
    }

    /// The settings for the set that is judged by time, if it is requested.
    fn mutexes(&self) -> Option<mutexes::Options> {
        let named = self.sets.is_empty() || self.sets.iter().any(|name| name == mutexes::NAME);
        let of_kind = self.kinds.is_empty() || self.kinds.contains(&Kind::Locks);
        let machines: Vec<String> =
            self.machines.iter().filter(|name| mutexes::knows(name)).cloned().collect();
        if !named || !of_kind || !self.machines.is_empty() && machines.is_empty() {
            return None;
        }
        let usual = mutexes::Options::new(self.pool.clone());
        let options = match self.extent {
            Extent::Quick => {
                mutexes::Options { tasks: vec![1, 2, 16], acquisitions: 1_600, ..usual }
            }
            _ => mutexes::Options { tasks: self.threads.clone(), ..usual },
        };
        Some(mutexes::Options { machines, seed: self.seed, ..options })
    }

    fn check(&self, sets: &[PublishedSet]) -> Result<(), Failure> {
        let is_known =
            |name: &&String| **name == mutexes::NAME || sets.iter().any(|set| set.name == **name);
        if let Some(unknown) = self.sets.iter().find(|name| !is_known(name)) {
            let known = names().join(", ");
            return Err(Failure::Usage(format!(
                "there is no set `{unknown}`: choose from {known}"
            )));
        }
        let mut machines: Vec<&set::MeasuredMachine> =
            sets.iter().flat_map(|set| &set.machines).collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        machines.dedup_by(|a, b| a.name == b.name);
        let known = |name: &&String| {
            mutexes::knows(name) || machines.iter().any(|machine| machine.is_called(name))
        };
        match self.machines.iter().find(|name| !known(name)) {
            None => Ok(()),
            Some(unknown) => {
                let names: Vec<&str> =
                    machines.iter().map(|machine| machine.name.as_str()).collect();
                Err(Failure::Usage(format!(
                    "nothing is published of `{unknown}`: choose from {}",
                    names.join(", ")
                )))
            }
        }
    }

    fn is_chosen(&self, set: &PublishedSet, point: &Point) -> bool {
        let machine = &set.machines[point.machine];
        let of_machine = || self.machines.iter().any(|name| machine.is_called(name));
        let most = machine.threads.last().copied().unwrap_or(0);
        let threads = match (self.threads.is_empty(), self.extent) {
            (false, _) => self.threads.contains(&point.threads) && point.threads <= most,
            (true, Extent::Full) => point.threads <= most,
            (true, Extent::Usual) => machine.threads.contains(&point.threads),
            (true, Extent::Quick) => {
                machine.threads.iter().take(2).any(|count| *count == point.threads)
            }
        };
        let case = match self.extent {
            Extent::Full => true,
            Extent::Usual => !set.cases[point.case].only_full,
            Extent::Quick => point.case == 0,
        };
        threads
            && case
            && (self.sets.is_empty() || self.sets.contains(&set.name))
            && (self.kinds.is_empty() || self.kinds.contains(&set.kind))
            && (self.machines.is_empty() || of_machine())
            && set.subjects[point.subject].ours.is_some()
            && set.cases[point.case].run.is_simulated()
    }

    fn job(&self, set: &PublishedSet, point: &Point, models: &BTreeMap<String, Model>) -> Job {
        let machine = &set.machines[point.machine];
        let ours = set.subjects[point.subject].ours.as_deref();
        set.cases[point.case].run.job(&Asked {
            model: &models[&machine.model],
            filling: machine.filling,
            ours: ours.expect("points without a counterpart are not chosen"),
            threads: point.threads,
            seed: self.seed,
        })
    }
}
