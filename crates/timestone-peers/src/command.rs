//! What is measured, and how it is printed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use manycore_measure as measure;
use manycore_measure::paired::{Better, Median, Protocol, Schedule};
use manycore_measure::{
    Cell, Column, Measurement, Mechanism, Metric, Parameter, Results, Table, Tone,
};

use crate::engine::{Engine, Failure, Promise};
use crate::engines::{ENGINES, VOLATILE};
use crate::slice::{self, KEYS, Point};
use crate::written::Written;

/// What is measured.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Other engines, in addition to TimeStone: all stores of this build if nothing is said.
    /// `memory`: the hash table of manycore, which keeps nothing
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_values_t = stores())]
    against: Vec<String>,
    /// When a commit returns
    #[arg(long, value_enum, default_value_t = Promise::Durable)]
    promise: Promise,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', value_name = "N", default_values_t = [1, 2, 8])]
    threads: Vec<usize>,
    /// Percent of the operations that put
    #[arg(long, value_delimiter = ',', value_name = "PERCENT", default_values_t = [2, 20, 50, 100])]
    update: Vec<u64>,
    /// Keys of a transaction that puts
    #[arg(long, value_name = "N", default_value_t = 1)]
    batch: usize,
    /// Pending commits of each thread, if the engine supports that; 0: wait for each commit
    #[arg(long, value_name = "N", default_value_t = 0)]
    in_flight: usize,
    /// Rounds: in each, every engine has a slice
    #[arg(long, value_name = "N", default_value_t = 11)]
    rounds: usize,
    /// Seconds of a slice
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3)]
    slice: f64,
    /// Where the stores are made, and removed again; it says which disk is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Options that nothing can be measured by.
#[derive(Debug)]
pub struct BadUsage {
    /// What is wrong.
    pub culprit: String,
    /// What to do.
    pub remedy: String,
}

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.culprit, self.remedy)
    }
}

impl std::error::Error for BadUsage {}

/// The other engines that keep what is put.
fn stores() -> impl Iterator<Item = String> {
    let names = ENGINES[1..].iter().map(|(name, _)| *name);
    names.filter(|name| *name != VOLATILE).map(str::to_owned)
}

struct Candidate {
    name: &'static str,
    engine: Box<dyn Engine>,
    /// Removes the store.
    _directory: tempfile::TempDir,
}

/// What was measured of a candidate, in all rounds.
#[derive(Clone, Default)]
struct Samples {
    /// Operations a second, of each round.
    rates: Vec<f64>,
    puts: u64,
    written: Written,
}

impl Samples {
    /// The number of writing calls and of their bytes for each stored key; `None` without keys.
    fn of_a_put(&self) -> Option<[f64; 2]> {
        let Written { calls, bytes } = self.written;
        (self.puts > 0).then(|| [calls, bytes].map(|count| count as f64 / self.puts as f64))
    }
}

impl Options {
    /// Looks whether these options can be measured by.
    ///
    /// # Errors
    ///
    /// What is wrong with the first that cannot.
    pub fn check(&self) -> Result<(), BadUsage> {
        let bad = |culprit: String, remedy: &str| Err(BadUsage { culprit, remedy: remedy.into() });
        let is_known = |name: &&String| ENGINES.iter().any(|(known, _)| known == *name);
        if let Some(name) = self.against.iter().find(|name| !is_known(name)) {
            let known: Vec<_> = ENGINES.iter().map(|(name, _)| *name).collect();
            let remedy = format!(
                "this build has {}; redb, lmdb, sqlite and fjall come with the feature `engines`, pmemobj with `pmemobj` \
                 where libpmemobj-dev is installed",
                known.join(", ")
            );
            return bad(format!("no engine {name}"), &remedy);
        }
        if self.promise == Promise::Durable && self.against.iter().any(|name| name == VOLATILE) {
            let culprit = format!("--against {VOLATILE} keeps nothing");
            return bad(culprit, "add --promise eventual");
        }
        if let Some(update) = self.update.iter().find(|update| **update > 100) {
            return bad(format!("--update {update}"), "a percentage is 100 at most");
        }
        if self.threads.contains(&0) || self.batch == 0 || self.rounds == 0 {
            let culprit = "--threads, --batch or --rounds 0".to_owned();
            return bad(culprit, "say at least 1");
        }
        if self.batch as u64 > KEYS {
            return bad(format!("--batch {}", self.batch), "the stores have 10000 keys");
        }
        if !(self.slice > 0.0 && self.slice <= 3600.0) {
            return bad(format!("--slice {}", self.slice), "say some tenths of a second, as 0.3");
        }
        if !self.directory.is_dir() {
            let culprit = format!("--directory {}", self.directory.display());
            return bad(culprit, "name a directory that is there");
        }
        Ok(())
    }

    /// Measures, and shows a table for each point, or the JSON of all.
    ///
    /// # Errors
    ///
    /// Those of the engines.
    pub fn run(&self, mut show: impl FnMut(&str)) -> Result<(), Failure> {
        let candidates = self.open()?;
        let mut measurements = Vec::new();
        for point in self.points() {
            let samples = self.sample(&candidates, point)?;
            if self.json {
                measurements.extend(self.measurements(&candidates, point, &samples)?);
                continue;
            }
            let Point { threads, update, batch, in_flight } = point;
            show(&format!(
                "{threads} threads, {update} % put, {batch} keys a transaction, {in_flight} in flight, {:?}\n{}\n",
                self.promise,
                draw(&candidates, &samples)?
            ));
        }
        if self.json {
            show(&(Results::of_this_host(measurements).to_json()? + "\n"));
        }
        Ok(())
    }

    fn points(&self) -> impl Iterator<Item = Point> + '_ {
        let Self { batch, in_flight, .. } = *self;
        self.threads.iter().flat_map(move |threads| {
            let of =
                move |update: &u64| Point { threads: *threads, update: *update, batch, in_flight };
            self.update.iter().map(of)
        })
    }

    fn open(&self) -> Result<Vec<Candidate>, Failure> {
        let mut candidates = Vec::new();
        let chosen = |name: &str| name == ENGINES[0].0 || self.against.iter().any(|a| a == name);
        for (name, open) in ENGINES.iter().filter(|(name, _)| chosen(name)) {
            let directory = tempfile::tempdir_in(&self.directory)?;
            let engine = open(directory.path(), self.promise)?;
            slice::fill(&*engine)?;
            candidates.push(Candidate { name, engine, _directory: directory });
        }
        Ok(candidates)
    }

    /// The samples of each candidate.
    fn sample(&self, candidates: &[Candidate], point: Point) -> Result<Vec<Samples>, Failure> {
        let mut samples = vec![Samples::default(); candidates.len()];
        let time = Duration::from_secs_f64(self.slice);
        for (number, round) in Schedule::new(candidates.len(), 1).take(self.rounds).enumerate() {
            for candidate in round {
                let engine = &*candidates[candidate].engine;
                let slice = slice::run(engine, point, time, number as u64)?;
                let of = &mut samples[candidate];
                of.rates.push(slice.rate);
                of.puts += slice.puts;
                of.written += slice.written;
            }
        }
        Ok(samples)
    }

    fn measurements(
        &self,
        candidates: &[Candidate],
        point: Point,
        samples: &[Samples],
    ) -> Result<Vec<Measurement>, Failure> {
        let of = |(candidate, samples): (&Candidate, &Samples)| {
            let median = Median::of(&samples.rates).ok_or("no round")?;
            let (low, high) = median.interval.unzip();
            let mechanism = Mechanism::Sync(candidate.name.to_owned());
            let mut one = Measurement::new("store", mechanism, "operations/s", median.value);
            (one.structure, one.update) = (Some("map".to_owned()), Some(point.update as f64));
            (one.low, one.high) = (low, high);
            (one.threads, one.repetitions) =
                (u32::try_from(point.threads)?, u32::try_from(samples.rates.len())?);
            let promise = Parameter::Name(format!("{:?}", self.promise).to_lowercase());
            for (name, value) in [
                ("promise", promise),
                ("batch", Parameter::Number(point.batch as f64)),
                ("in_flight", Parameter::Number(point.in_flight as f64)),
            ] {
                one.parameters.insert(name.to_owned(), value);
            }
            if let Some([calls, bytes]) = samples.of_a_put() {
                for (name, value, unit) in
                    [("count_writes", calls, "1/put"), ("count_written_bytes", bytes, "bytes/put")]
                {
                    let (unit, low, high) = (unit.to_owned(), None, None);
                    one.metrics.insert(name.to_owned(), Metric { value, unit, low, high });
                }
            }
            Ok(one)
        };
        candidates.iter().zip(samples).map(of).collect()
    }
}

fn draw(candidates: &[Candidate], samples: &[Samples]) -> Result<Table, Failure> {
    let columns = [
        "operations/s",
        "95 % interval",
        "writes a put",
        "bytes a put",
        "timestone to it",
        "95 % interval",
    ];
    let columns = columns.map(Column::number);
    let mut table = Table::new(std::iter::once(Column::words("engine")).chain(columns));
    let others = samples.len().saturating_sub(1).max(1);
    for (index, candidate) in candidates.iter().enumerate() {
        let median = Median::of(&samples[index].rates).ok_or("no round")?;
        let (low, high) = median.interval.unzip();
        let mut cells = vec![
            candidate.name.to_owned(),
            measure::count(median.value),
            format!(
                "{}..{}",
                low.map_or("?".into(), measure::count),
                high.map_or("?".into(), measure::count)
            ),
        ];
        let of_a_put = samples[index].of_a_put();
        cells.extend(of_a_put.map_or(["-".into(), "-".into()], |[calls, bytes]| {
            [format!("{calls:.3}"), format!("{bytes:.0}")]
        }));
        if index > 0 {
            let mut protocol = Protocol::new(Better::Higher);
            // All intervals hold together with this confidence.
            protocol.confidence = 1.0 - (1.0 - protocol.confidence) / others as f64;
            let comparison = protocol.compare(&samples[index].rates, &samples[0].rates)?;
            let (low, high) = comparison.interval.unzip();
            cells.push(measure::ratio(comparison.ratio));
            cells.push(measure::interval(low, high));
        }
        table.row(cells.into_iter().map(|text| Cell::new(text, Tone::Plain)));
    }
    Ok(table)
}
