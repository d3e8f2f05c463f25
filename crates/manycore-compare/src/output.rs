//! A comparison on the terminal and as JSON.

use std::fmt::Display;

use manycore_measure::paired::{Better, Comparison, Median, Verdict};
use manycore_measure::{
    Cell, Column, Host, Measurement, Mechanism, Metric as Further, Results, Table, Tone, interval,
    quantity, ratio, significant,
};
use serde_json::{Value, json};

use crate::metric::Metric;
use crate::verdict::{Finding, Ranking, Standing};
use manycore_launch::failure::{Failure, Result};

/// What was compared.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The program under test.
    pub command: String,
    /// The load on it.
    pub load: Option<String>,
    /// The number that counts.
    pub metric: &'a Metric,
    /// The seed of the order of runs.
    pub seed: u64,
}

/// The table and the verdict; with `wide`, also the intervals of all values.
pub fn text(subject: &Subject, ranking: &Ranking, wide: bool) -> String {
    let load = subject.load.as_ref().map(|load| format!("under load by: {load}\n"));
    format!(
        "{command}\n{load}{host}\n\
         {metric}, {goal} is better; {runs} runs of each, seed {seed}\n\n\
         {table}\n\n{sentence}\n",
        command = subject.command,
        load = load.unwrap_or_default(),
        host = Host::describe(),
        metric = subject.metric.name(),
        goal = if ranking.better == Better::Lower { "less" } else { "more" },
        runs = ranking.standings[0].values.len(),
        seed = subject.seed,
        table = table(subject, ranking, wide),
        sentence = ranking.sentence(subject.metric.noun()),
    )
}

fn table(subject: &Subject, ranking: &Ranking, wide: bool) -> Table {
    let is_wall = matches!(subject.metric, Metric::Wall);
    let show = |value: f64| if is_wall { quantity(value, "ns") } else { significant(value, 4) };
    let time = |value: f64| quantity(value, "ns");
    // As much as a terminal of 80 columns has room for, unless more is asked for.
    let further = |heading| wide.then(|| Column::number(heading));
    let columns = [
        Some(Column::words("lock")),
        Some(Column::number(subject.metric.noun())),
        further("95 %"),
        Some(Column::number("of glibc's, 95 %")),
        Some(Column::words("verdict")),
        Some(Column::number("CPU time")),
        further("95 %"),
        Some(Column::number("memory")),
        further("killed"),
    ];
    let mut table = Table::new(columns.into_iter().flatten());
    for standing in &ranking.standings {
        let against = |c: Comparison| {
            let (low, high) = c.interval.unzip();
            format!("{} {}", ratio(c.ratio), interval(low, high))
        };
        let between = |median: &Median, show: &dyn Fn(f64) -> String| {
            let (low, high) = median.interval?;
            Some(format!("{} to {}", show(low), show(high)))
        };
        let further = |cell: Option<String>| wide.then(|| Cell::from(cell.unwrap_or_default()));
        let cells = [
            Some((&standing.lock).into()),
            Some(show(standing.value.value).into()),
            further(between(&standing.value, &show)),
            Some(standing.comparison.map(against).unwrap_or_default().into()),
            Some(verdict(subject.metric, standing)),
            Some(time(standing.cpu.value).into()),
            further(between(&standing.cpu, &time)),
            Some(memory(standing).into()),
            further(Some(standing.killed.to_string())),
        ];
        table.row(cells.into_iter().flatten());
    }
    table
}

fn verdict(metric: &Metric, standing: &Standing) -> Cell {
    let Some(comparison) = standing.comparison else { return "base line".into() };
    let tone = match comparison.verdict {
        Verdict::Faster => Tone::Good,
        Verdict::Slower => Tone::Bad,
        Verdict::NoDifference | Verdict::Undecided => Tone::Plain,
    };
    Cell::new(word(metric, comparison.verdict), tone)
}

fn word(metric: &Metric, verdict: Verdict) -> &'static str {
    match (verdict, metric) {
        (Verdict::Faster, Metric::Wall) => "faster",
        (Verdict::Faster, Metric::Printed(_)) => "better",
        (Verdict::Slower, Metric::Wall) => "slower",
        (Verdict::Slower, Metric::Printed(_)) => "worse",
        (Verdict::NoDifference, _) => "no difference",
        (Verdict::Undecided, _) => "undecided",
    }
}

/// The largest resident set. Small ones are not known exactly: the parent's own memory is counted
/// in.
fn memory(standing: &Standing) -> String {
    let (bytes, least) = (standing.max_rss.value, standing.max_rss_least as f64);
    if bytes > least { quantity(bytes, "bytes") } else { format!("< {}", quantity(least, "bytes")) }
}

/// Results in the form of the schema, and under `comparison` the data of the comparison.
pub fn json(subject: &Subject, ranking: &Ranking) -> Result<String> {
    let failed = |why: &dyn Display| Failure::failed(format!("cannot write the results: {why}"));
    let measurements = ranking.standings.iter().map(|one| measurement(subject, one)).collect();
    let text = Results::of_this_host(measurements).to_json().map_err(|error| failed(&error))?;
    let mut results: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    results["comparison"] = comparison(subject, ranking);
    Ok(format!("{results:#}\n"))
}

fn measurement(subject: &Subject, standing: &Standing) -> Measurement {
    let mechanism = Mechanism::Lock(standing.lock.clone());
    let mut result =
        Measurement::new("program", mechanism, subject.metric.unit(), standing.value.value);
    (result.low, result.high) = standing.value.interval.unzip();
    // Unknown: the program decides how many threads it has.
    result.threads = 0;
    result.repetitions = standing.values.len() as u32;
    result.seed = Some(subject.seed);
    result.parameters.insert("command".into(), subject.command.as_str().into());
    if let Some(load) = &subject.load {
        result.parameters.insert("load".into(), load.as_str().into());
    }
    result.metrics.insert("cpu_time".into(), further(&standing.cpu, "ns"));
    result.metrics.insert("max_rss".into(), further(&standing.max_rss, "bytes"));
    if let Some(comparison) = standing.comparison {
        let (low, high) = comparison.interval.unzip();
        let ratio = Further { value: comparison.ratio, unit: "ratio".into(), low, high };
        result.metrics.insert("ratio".into(), ratio);
    }
    result
}

fn further(median: &Median, unit: &str) -> Further {
    let (low, high) = median.interval.unzip();
    Further { value: median.value, unit: unit.into(), low, high }
}

fn comparison(subject: &Subject, ranking: &Ranking) -> Value {
    let name = |number: &usize| ranking.standings[*number].lock.clone();
    let (finding, best) = match &ranking.finding {
        Finding::Winner(number) => ("winner", vec![name(number)]),
        Finding::Ahead(numbers) => ("ahead", numbers.iter().map(name).collect()),
        Finding::NoneBetter => ("none better", vec![]),
        Finding::NoDifference => ("no difference", vec![]),
        Finding::Undecided => ("undecided", vec![]),
    };
    let candidate = |standing: &Standing| {
        json!({
            "lock": standing.lock,
            "verdict": standing.comparison.map(|c| word(subject.metric, c.verdict)),
            "values": standing.values,
            "killed": standing.killed,
        })
    };
    json!({
        "base": ranking.standings[0].lock,
        "metric": subject.metric.name(),
        "better": if ranking.better == Better::Lower { "lower" } else { "higher" },
        "finding": finding,
        "best": best,
        "sentence": ranking.sentence(subject.metric.noun()),
        "candidates": ranking.standings.iter().map(candidate).collect::<Vec<_>>(),
    })
}
