//! `manycore sim many`: compares the locks on all machines with many CPUs, from one thread to twice
//! as many as CPUs, with short and long sections.

mod command;
mod points;
mod render;
mod standing;

use std::time::{Duration, Instant};

use manycore_measure::{Bound, Claim, Measurement};
use manycore_sim::{Model, model};

use self::points::MachinePoint;
pub use self::render::{figure, render};
use self::standing::{Outcome, Run};
use crate::accuracy::judge::claim;
use crate::contender;
use crate::failure::Failure;
use crate::front::Front;
use crate::lock::SIMULATED_BASE;
use crate::lock::simulated as lock;
use crate::simulated::{Finding, Job, Outlook, SimulatorPool, variant};
use crate::workload::Workload;

/// A machine has many CPUs from here on.
const MANY: u32 = 20;

/// Locks against each other on all machines with many CPUs.
pub(crate) struct Many;

impl Workload for Many {
    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }
}

/// Which locks meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mutexes.
    Mutexes,
    /// Reader-writer locks, with sections that mostly read.
    ReaderWriter,
}

impl Kind {
    /// The lock that users get if they name none.
    pub fn usual(self) -> &'static str {
        match self {
            Self::Mutexes => "adaptive",
            Self::ReaderWriter => "adaptive-rw",
        }
    }

    /// What the usual lock is compared with.
    fn rivals(self) -> Vec<&'static str> {
        match self {
            Self::Mutexes => contender::simulated::names(false).collect(),
            Self::ReaderWriter => vec!["per-cpu-rw", "bravo", "phase-rw"],
        }
    }

    /// The share of the best other lock's throughput that the default lock must reach at each
    /// point.
    fn least(self) -> f64 {
        match self {
            Self::Mutexes => 0.8,
            Self::ReaderWriter => 0.9,
        }
    }
}

/// How much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A few points of each machine.
    Quick,
    /// As many points as there is time for, drawn from all points.
    Within(Duration),
    /// All points.
    Whole,
}

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machines; all with many CPUs if there are none.
    pub machines: Vec<Model>,
    /// Which locks.
    pub kind: Kind,
    /// Names of locks in addition to the usual one and the base line; empty means all.
    pub locks: Vec<String>,
    /// How much.
    pub effort: Effort,
    /// The seed of every random choice.
    pub seed: u64,
    /// The processes that simulate.
    pub pool: SimulatorPool,
}

/// The results of the comparison.
#[derive(Clone, Debug)]
pub struct Standings {
    /// A record for each lock at each point.
    pub measurements: Vec<Measurement>,
    /// What is asked of the usual lock.
    pub claims: Vec<Claim>,
    /// What got stuck, a line each.
    pub failures: Vec<String>,
    kind: Kind,
    outcomes: Vec<Outcome>,
    /// How many points the whole has.
    whole: usize,
}

/// Simulates, and compares.
pub fn run(options: &Options) -> Result<Standings, Failure> {
    let machines = options.machines()?;
    let subjects = options.subjects()?;
    let places = points::all(options.kind, &machines);
    let whole = places.len();
    let places = options.chosen(places);
    let jobs = |place: &MachinePoint| -> Vec<Job> {
        let settings = options.settings(place, &machines);
        let text = &variant::alone(&settings.machine)[0];
        subjects.iter().map(|lock| settings.job(&place.point, lock, text)).collect()
    };
    let planned: Vec<Job> = places.iter().flat_map(jobs).collect();
    let pool = &options.pool;
    let outlook = Outlook::new(&planned, pool.cache.as_ref(), pool.size());
    let pool = pool.with_outlook(outlook);
    let mut found = Standings {
        measurements: Vec::new(),
        claims: Vec::new(),
        failures: Vec::new(),
        kind: options.kind,
        outcomes: Vec::new(),
        whole,
    };
    let start = Instant::now();
    for place in &places {
        let time_is_up = matches!(options.effort, Effort::Within(time) if start.elapsed() >= time);
        if time_is_up && !found.outcomes.is_empty() {
            break;
        }
        let answers = pool.run(&jobs(place));
        found.add(place, &options.settings(place, &machines), &subjects, answers);
    }
    found.claims = found.judge();
    Ok(found)
}

impl Options {
    fn machines(&self) -> Result<Vec<Model>, Failure> {
        if !self.machines.is_empty() {
            return Ok(self.machines.clone());
        }
        let all: Result<Vec<Model>, _> = model::names().map(model::find).collect();
        let mut all = all.map_err(|problem| Failure::Failed(problem.to_string()))?;
        all.retain(|model| model.machine().topology.cpus() >= MANY);
        Ok(all)
    }

    /// The base line first.
    fn subjects(&self) -> Result<Vec<String>, Failure> {
        let known = || contender::simulated::names(true);
        if let Some(unknown) = self.locks.iter().find(|name| !known().any(|lock| lock == **name)) {
            let names = known().collect::<Vec<_>>().join(", ");
            return Err(Failure::Usage(format!(
                "no lock `{unknown}` can be simulated: choose from {names}"
            )));
        }
        let asked = match self.locks.is_empty() {
            true => self.kind.rivals().into_iter().map(str::to_owned).collect(),
            false => self.locks.clone(),
        };
        let mut subjects = vec![SIMULATED_BASE.to_owned(), self.kind.usual().to_owned()];
        for lock in asked {
            if !subjects.contains(&lock) {
                subjects.push(lock);
            }
        }
        Ok(subjects)
    }

    fn chosen(&self, mut places: Vec<MachinePoint>) -> Vec<MachinePoint> {
        match self.effort {
            Effort::Whole => {}
            Effort::Quick => places.retain(MachinePoint::is_quick),
            // The same order each time: a longer run goes on where a shorter one stopped.
            Effort::Within(_) => fastrand::Rng::with_seed(self.seed).shuffle(&mut places),
        }
        places
    }

    /// As for `sim lock` at a point.
    fn settings(&self, place: &MachinePoint, machines: &[Model]) -> lock::Options {
        let model = machines[place.machine].clone();
        lock::Options {
            reads: place.point.reads,
            data: place.point.data,
            duration: Some(place.duration),
            seed: self.seed,
            ..lock::Options::new(model, self.pool.clone())
        }
    }
}

impl Standings {
    fn add(
        &mut self,
        place: &MachinePoint,
        settings: &lock::Options,
        subjects: &[String],
        answers: Vec<Result<Finding, String>>,
    ) {
        let mut runs = Vec::new();
        let mut base = None;
        for (lock, answer) in subjects.iter().zip(answers) {
            match answer {
                Ok(finding) => {
                    runs.push(Run::new(lock, &finding));
                    let findings = [finding];
                    let record = settings.record(
                        &place.point,
                        lock,
                        &findings,
                        base.as_ref().map(<[Finding; 1]>::as_slice),
                    );
                    self.measurements.push(record);
                    if lock == SIMULATED_BASE {
                        base = Some(findings);
                    }
                }
                Err(error) => self.failures.push(format!("{lock}, {place}: {error}")),
            }
        }
        self.outcomes.push(Outcome { place: place.clone(), runs });
    }

    /// The claims about the default lock, over all simulated points.
    fn judge(&self) -> Vec<Claim> {
        let usual = self.kind.usual();
        let rivals = self.kind.rivals();
        let standing = standing::of(usual, &rivals, &self.outcomes, self.kind.least());
        let points = format!("{} points", standing.points);
        let least = |name: &str, text: &str, bound: f64, worst: &Option<(f64, String)>| {
            let value = worst.as_ref().map(|(value, _)| *value);
            let note = worst.as_ref().map_or("no point", |(_, place)| place);
            let text = format!("{usual} over {text}, every point");
            claim(&format!("many-{usual}-{name}"), &text, Bound::AtLeast(bound), value, note)
        };
        let mut claims = vec![
            least("least", "the best other lock", self.kind.least(), &standing.least),
            least("futex", SIMULATED_BASE, 0.95, &standing.least_of_base),
        ];
        if self.kind == Kind::Mutexes {
            let text = format!("{usual} over the best other lock, geometric mean");
            let id = format!("many-{usual}-mean");
            claims.insert(0, claim(&id, &text, Bound::AtLeast(0.95), standing.mean, &points));
            let (value, note) = match standing::longest_waits(usual, "mcs", &self.outcomes) {
                Some((value, place)) => (Some(value), place),
                None => (None, "no point with both".to_owned()),
            };
            let text = format!("{usual}'s p99.9 wait over mcs', where threads fit on CPUs");
            let id = format!("many-{usual}-waits");
            claims.push(claim(&id, &text, Bound::AtMost(2.0), value, &note));
        }
        claims
    }
}
