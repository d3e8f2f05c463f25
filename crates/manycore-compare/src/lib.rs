//! `manycore compare`: does another lock help, and by how much?
//!
//! | module | what is in it |
//! |---|---|
//! | [`trial`] | one run of a program under a lock, with a load if it is a server |
//! | [`metric`], [`rounds`] | what counts in a run; runs of all locks in turn, for the given time |
//! | [`verdict`] | which lock wins, by ratios of the same round |
//! | [`options`], [`output`] | the command's options; what it prints |
//!
//! ```
//! use manycore_compare::metric::Metric;
//!
//! let rate: Metric = r"rate: ([0-9.]+)".parse()?;
//! assert!("rate: [0-9]+".parse::<Metric>().is_err(), "no group, so no number");
//! # Ok::<(), manycore_launch::failure::Failure>(())
//! ```

pub mod metric;
pub mod options;
pub mod output;
pub mod rounds;
pub mod trial;
pub mod verdict;

use std::time::Duration;

use manycore_profile::command::joined;
pub use options::Options;

use manycore_launch::failure::Result;
use manycore_launch::signals::Inbox;
use manycore_launch::target;
use manycore_launch::terminal::{Terminal, print};
use output::Subject;
use rounds::Rounds;
use verdict::Ranking;

/// Compares, and prints what came out.
pub fn run(options: &Options, terminal: &Terminal) -> Result<()> {
    target::check(&options.command)?;
    let candidates = options.candidates()?;
    let rounds = Rounds {
        plan: &options.plan()?,
        metric: &options.metric,
        candidates: &candidates,
        limit: options.limit(candidates.len() - 1, terminal),
        seed: options.seed,
    };
    let mut inbox = Inbox::open()?;
    let series = rounds.measure(&mut inbox, terminal)?;

    let locks: Vec<String> = candidates.iter().map(|one| one.lock().to_string()).collect();
    let better = options.metric.better(options.lower_is_better);
    let ranking = Ranking::of(&locks, series, better)?;
    warn_of_killed(&ranking, options.grace, terminal);
    let subject = Subject {
        command: joined(options.command.iter().map(|word| word.to_string_lossy())),
        load: options.load.as_ref().map(|load| load.to_string_lossy().into_owned()),
        metric: &options.metric,
        seed: options.seed,
    };
    let result = match options.json {
        true => output::json(&subject, &ranking)?,
        false => output::text(&subject, &ranking, options.wide),
    };
    print(&result)?;
    if options.fail_if_slower { ranking.none_is_worse() } else { Ok(()) }
}

fn warn_of_killed(ranking: &Ranking, grace: Duration, terminal: &Terminal) {
    for standing in ranking.standings.iter().filter(|standing| standing.killed > 0) {
        terminal.note(format_args!(
            "{}: in {} of {} runs the server did not end within {} of SIGTERM and was killed (--grace)",
            standing.lock,
            standing.killed,
            standing.values.len(),
            humantime::format_duration(grace),
        ));
    }
}
