//! TimeStone beside other embedded stores: the same numbers, in turn, on the same disk.
//!
//! Rounds are interleaved: in each, every engine has one slice, in an order drawn for the round.
//! What is printed is each engine's median, and the ratio of TimeStone to it, from the pairs within
//! rounds.

mod engine;
mod engines;
mod fjall;
mod lmdb;
mod ours;
mod redb;
mod slice;
mod sqlite;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use manycore_measure as measure;
use manycore_measure::paired::{Better, Median, Protocol, Schedule};
use manycore_measure::{Cell, Column, Table, Tone};

use engine::{Engine, Failure, Promise};
use engines::ENGINES;
use slice::Point;

/// TimeStone beside redb, LMDB, SQLite and fjall: 10,000 numbers, read and put.
#[derive(Parser)]
struct Arguments {
    /// Engines; TimeStone is always one.
    #[arg(long, value_delimiter = ',', default_values_t = ENGINES[1..].iter().map(|(name, _)| (*name).to_owned()))]
    against: Vec<String>,
    /// When a commit returns.
    #[arg(long, value_enum, default_value_t = Promise::Durable)]
    promise: Promise,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 8])]
    threads: Vec<usize>,
    /// Percent of the operations that put.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 20, 50, 100])]
    update: Vec<u64>,
    /// Keys of a transaction that puts.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Commits that each thread has on their way, if the engine can; 0: it waits for each.
    #[arg(long, default_value_t = 0)]
    in_flight: usize,
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Seconds of a slice.
    #[arg(long, default_value_t = 0.3)]
    slice: f64,
    /// Where the stores are made, and removed again; it says which disk is measured.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
}

struct Candidate {
    name: &'static str,
    engine: Box<dyn Engine>,
    /// Removes the store.
    _directory: tempfile::TempDir,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let candidates = open(&arguments)?;
    for threads in &arguments.threads {
        for update in &arguments.update {
            let Arguments { batch, in_flight, .. } = arguments;
            let point = Point { threads: *threads, update: *update, batch, in_flight };
            let samples = sample(&candidates, point, &arguments)?;
            println!(
                "{threads} threads, {update} % put, {batch} keys a transaction, {in_flight} in flight, {:?}",
                arguments.promise
            );
            println!("{}", draw(&candidates, &samples)?);
        }
    }
    Ok(())
}

fn open(arguments: &Arguments) -> Result<Vec<Candidate>, Failure> {
    let mut candidates = Vec::new();
    let chosen = arguments.against.iter().map(String::as_str);
    for name in std::iter::once(ENGINES[0].0).chain(chosen) {
        let known = ENGINES.iter().find(|(known, _)| *known == name);
        let (name, open) = known.ok_or_else(|| {
            let all: Vec<_> = ENGINES.iter().map(|(name, _)| *name).collect();
            format!("no engine {name}: there are {}", all.join(", "))
        })?;
        let directory = tempfile::tempdir_in(&arguments.directory)?;
        let engine = open(directory.path(), arguments.promise)?;
        slice::fill(&*engine)?;
        candidates.push(Candidate { name, engine, _directory: directory });
    }
    Ok(candidates)
}

/// The samples of each candidate, one a round.
fn sample(
    candidates: &[Candidate],
    point: Point,
    arguments: &Arguments,
) -> Result<Vec<Vec<f64>>, Failure> {
    let mut samples = vec![Vec::new(); candidates.len()];
    let time = Duration::from_secs_f64(arguments.slice);
    for (number, round) in Schedule::new(candidates.len(), 1).take(arguments.rounds).enumerate() {
        for candidate in round {
            let engine = &*candidates[candidate].engine;
            samples[candidate].push(slice::run(engine, point, time, number as u64)?);
        }
    }
    Ok(samples)
}

fn draw(candidates: &[Candidate], samples: &[Vec<f64>]) -> Result<Table, Failure> {
    let columns = ["operations/s", "95 % interval", "timestone to it", "95 % interval"];
    let columns = columns.map(Column::number);
    let mut table = Table::new(std::iter::once(Column::words("engine")).chain(columns));
    let others: Vec<_> = samples[1..].iter().collect();
    for (index, candidate) in candidates.iter().enumerate() {
        let median = Median::of(&samples[index]).ok_or("no round")?;
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
        if index > 0 {
            let mut protocol = Protocol::new(Better::Higher);
            // All intervals hold together with this confidence.
            protocol.confidence = 1.0 - (1.0 - protocol.confidence) / others.len() as f64;
            let comparison = protocol.compare(&samples[index], &samples[0])?;
            let (low, high) = comparison.interval.unzip();
            cells.push(measure::ratio(comparison.ratio));
            cells.push(measure::interval(low, high));
        }
        table.row(cells.into_iter().map(|text| Cell::new(text, Tone::Plain)));
    }
    Ok(table)
}
