//! `manycore figures`: the results that publications report, side by side with ours.

mod array;

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::{Extent, Figure, Reproduction, library, render};
use clap::Args;
use manycore_bench::simulated::{Merged, Plan, SimulatorPool};
use manycore_measure::{Claim, Column, Judgement, Results, Table};

use manycore_bench::front::{SimulatorOptions, failed_locks, print_results, say_troubles};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::{Terminal, print};

const NOTES: &str = "\
Examples:
  manycore figures --list
  manycore figures --quick --out figures
  manycore figures innodb-locks mvrlu-hash --bands
  manycore figures --check
  manycore figures ./mine.toml
  manycore figures --bands --export slurm --out array    # for a cluster; says how to go on
  manycore figures --bands --merge array/results --out figures

Columns:
  published   the value in the publication, where it gives one
  found       the same value, simulated
  band        its range with latencies x0.7 and x1.4, lines held for 0 and 150
              cycles, and the other policy of combining reads (--bands)
  expected    the verdict that was expected before the first run

Exit status:
  0   simulated
  1   a simulation failed; or, with --check, a claim that was expected to pass failed
  2   bad usage, or a file that is no figure
";

/// Redraw published figures on simulated machines, and judge their publications' claims
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Figures by name, or files of figures [default: all that come with manycore]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Only name the figures
    #[arg(long, conflicts_with_all = ["out", "quick", "bands", "check", "json"])]
    list: bool,
    /// Write a page, pictures and tables into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Fewer points and shorter runs: a check that it works, not of the values
    #[arg(long)]
    quick: bool,
    /// Simulate variants of the machine as well: 18 simulations for each point
    #[arg(long)]
    bands: bool,
    /// Fail if a claim fails that was expected to pass
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Simulate nothing: write a job array for this engine into the directory of --out
    #[arg(long, value_name = "ENGINE", value_enum, requires = "out", conflicts_with_all = ["check", "json", "list"])]
    export: Option<array::Engine>,
    /// The number of tasks in the job array
    #[arg(long, value_name = "N", default_value_t = 64, requires = "export", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// Simulate piece K of N into the directory of --cache, and print nothing: a task of a job
    /// array
    #[arg(long, value_name = "K/N", requires = "cache", conflicts_with_all = ["out", "check", "json", "list", "no_cache"])]
    piece: Option<array::Piece>,
    /// First add the results in this directory, such as those of a job array, to the cache
    #[arg(long, value_name = "DIR", conflicts_with_all = ["list", "no_cache", "export"])]
    merge: Vec<PathBuf>,
    #[command(flatten)]
    pool: SimulatorOptions,
}

/// Simulates, judges, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    let extent = if options.quick { Extent::Quick } else { Extent::Whole };
    let names = library::names().map(str::to_owned);
    let ids = if options.ids.is_empty() { names.collect() } else { options.ids.clone() };
    let figures = ids.iter().map(|id| library::find(id, extent));
    let figures = figures.collect::<std::result::Result<Vec<_>, _>>();
    let figures = figures.map_err(|problem| Failure::BadInput(problem.to_string()))?;
    if options.list {
        let mut table =
            Table::new([Column::words("figure"), Column::words("about"), Column::words("source")]);
        for figure in &figures {
            table.row([&figure.id, &figure.title, &figure.source].map(|text| text.as_str().into()));
        }
        return print(&table.to_string());
    }
    refuse_the_same_twice(&figures)?;
    let unwritable = |directory: &Path, error: &io::Error| {
        Failure::bad_input(
            format!("cannot write into '{}': {error}", directory.display()),
            "give a directory that can be written",
        )
    };
    // This is checked before anything is simulated, so that no simulation is in vain.
    if let Some(directory) = &options.out {
        fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
    }
    let pool = options.pool.start(terminal)?;
    for directory in &options.merge {
        merge(&pool, directory, terminal)?;
    }
    let plan = plan(&figures, options.bands, &pool)?;
    if let (Some(engine), Some(directory)) = (options.export, &options.out) {
        let array = array::Array { options, tasks: plan.len().min(options.tasks as usize) };
        return array.write(engine, directory, plan.len());
    }
    if let Some(piece) = options.piece {
        let failures = piece.of(&plan).run(&pool);
        say_troubles(&pool, terminal);
        return failed_locks(&failures);
    }
    let pool = pool.with_outlook(plan.outlook(&pool));
    let mut found = Vec::new();
    for (number, figure) in figures.into_iter().enumerate() {
        terminal.note(format_args!("{} ({} of {})", figure.id, number + 1, ids.len()));
        found.push(crate::run(figure, options.bands, &pool)?);
    }
    say_troubles(&pool, terminal);
    let results = Results {
        claims: found.iter().flat_map(|found| found.claims.clone()).collect(),
        ..Results::new(found.iter().flat_map(|found| found.measurements.clone()).collect())
    };
    print_results(&results, options.json, &render(&found))?;
    if let Some(directory) = &options.out {
        crate::write(&found, directory).map_err(|error| unwritable(directory, &error))?;
        terminal.note(format_args!("open {}", directory.join("index.html").display()));
    }
    if options.check { broken(&found, extent) } else { Ok(()) }
}

/// All that is simulated.
fn plan(figures: &[Figure], bands: bool, pool: &SimulatorPool) -> Result<Plan> {
    let mut plan = Plan::default();
    for figure in figures {
        plan = plan.and(crate::plan(figure, bands, pool)?);
    }
    Ok(plan)
}

/// Adds the results of a directory, and reports their number.
fn merge(pool: &SimulatorPool, directory: &Path, terminal: &Terminal) -> Result<()> {
    let Some(cache) = &pool.cache else {
        return Err(Failure::bad_input("there is no cache to merge into", "give one: --cache DIR"));
    };
    let merged = cache.merge(directory).map_err(|error| {
        Failure::bad_input(
            format!("cannot merge '{}': {error}", directory.display()),
            "give a directory in which results were kept, by --cache",
        )
    })?;
    let Merged { new, known, of_others, unreadable } = merged;
    let mut said = format!("{}: {new} results added, {known} known", directory.display());
    if of_others > 0 {
        said += &format!(", {of_others} of another build of manycore left, which may differ");
    }
    if unreadable > 0 {
        said += &format!(", {unreadable} files left that cannot be read");
    }
    terminal.note(said);
    Ok(())
}

/// What is written is named after the figure.
fn refuse_the_same_twice(figures: &[Figure]) -> Result<()> {
    let again = |(place, figure): &(usize, &Figure)| {
        figures[..*place].iter().any(|other| other.id == figure.id)
    };
    match figures.iter().enumerate().find(again) {
        None => Ok(()),
        Some((_, figure)) => Err(Failure::bad_input(
            format!("two figures are called `{}`", figure.id),
            "name each once, or rename a file",
        )),
    }
}

/// An error if a claim failed that was expected to pass, or could not be judged after a complete
/// run.
fn broken(found: &[Reproduction], extent: Extent) -> Result<()> {
    let is_broken = |claim: &&Claim| {
        let is_missing = claim.value.is_none() && extent == Extent::Whole;
        let is_broken = claim.verdict == Judgement::Fail || is_missing;
        is_broken && claim.expected == Some(Judgement::Pass)
    };
    let claims = found.iter().flat_map(|found| &found.claims);
    let broken: Vec<&str> = claims.filter(is_broken).map(|claim| claim.id.as_str()).collect();
    match broken.as_slice() {
        [] => Ok(()),
        broken => Err(Failure::failed(format!(
            "{} failed of the claims that were expected to pass: {}",
            broken.len(),
            broken.join(", ")
        ))),
    }
}
