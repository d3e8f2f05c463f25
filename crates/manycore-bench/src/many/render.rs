//! The grid for a person: each lock's standing, and the points where the usual lock is behind.

use std::collections::BTreeMap;

use manycore_measure::{Axis, Cell, Claim, Column, Figure, Map, Panel, Table, quantity, ratio};

use super::points::columns;
use super::standing::{self, Outcome};
use super::{Kind, Standings};
use crate::lock::SIMULATED_BASE as BASE;

/// The number of points listed at which the usual lock is farthest behind.
const WORST: usize = 20;

/// Tables, and the claims.
pub fn render(found: &Standings) -> String {
    let (usual, count) = (found.kind.usual(), found.outcomes.len());
    let mut text = format!(
        "{count} of {} points, simulated; throughput over the best other lock at each:\n{}\n",
        found.whole,
        standings(found)
    );
    text += &format!("\n{usual} over the best other lock, geometric means, by threads:\n");
    text += &format!("{}\n", by_threads(found));
    text += &format!("\nWhere {usual} is farthest behind:\n{}\n", worst(found));
    text + &format!("\n{}", Claim::table(&found.claims))
}

/// The locks, the best on average first.
fn standings(found: &Standings) -> Table {
    let bar = found.kind.least();
    let rivals = found.kind.rivals();
    let locks: Vec<&str> = found
        .outcomes
        .first()
        .map_or(Vec::new(), |outcome| outcome.runs.iter().map(|run| run.lock.as_str()).collect());
    let of_lock = |lock: &str| (lock.to_owned(), standing::of(lock, &rivals, &found.outcomes, bar));
    let mut rows: Vec<_> = locks.into_iter().map(of_lock).collect();
    rows.sort_by(|(_, a), (_, b)| b.mean.unwrap_or(0.0).total_cmp(&a.mean.unwrap_or(0.0)));
    let under = format!("under {bar}");
    let of_base = format!("least of {BASE}");
    let numbers = ["points", "mean", "least", &under, &of_base, "under 0.95", "max/min"];
    let numbers = numbers.into_iter().map(Column::number);
    let words = Column::words("where it is least");
    let mut table = Table::new([Column::words("lock")].into_iter().chain(numbers).chain([words]));
    let value = |worst: &Option<(f64, String)>| worst.as_ref().map_or(0.0, |(value, _)| *value);
    for (lock, standing) in rows {
        let place = standing.least.as_ref().map_or(String::new(), |(_, place)| place.clone());
        table.row([
            Cell::from(lock.as_str()),
            standing.points.to_string().into(),
            ratio(standing.mean.unwrap_or(0.0)).into(),
            ratio(value(&standing.least)).into(),
            standing.under.to_string().into(),
            ratio(value(&standing.least_of_base)).into(),
            standing.under_base.to_string().into(),
            quantity(unfairest(&lock, &found.outcomes), "ratio").into(),
            place.into(),
        ]);
    }
    table
}

/// A lock's largest ratio between the operations of its busiest and its least busy thread, as long
/// as there is a CPU for each thread.
fn unfairest(lock: &str, outcomes: &[Outcome]) -> f64 {
    let fit = outcomes.iter().filter(|one| one.place.point.threads <= one.place.cpus);
    let all = fit.filter_map(|one| one.run(lock)).map(|run| run.fairness);
    all.filter(|fairness| fairness.is_finite()).fold(0.0, f64::max)
}

/// Geometric means of the usual lock over the best other one, by machine and number of threads.
fn fields(kind: Kind, outcomes: &[&Outcome]) -> Vec<(String, Vec<Option<f64>>)> {
    let rivals = kind.rivals();
    let mut rows: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    outcomes.iter().for_each(|one| rows.entry(&one.place.name).or_default().push(one));
    let row = |(name, members): (&str, Vec<&Outcome>)| {
        let field = |threads: &String| {
            let at = members.iter().filter(|one| one.place.threads_in_words() == *threads);
            standing::mean(at.filter_map(|one| one.over_best(kind.usual(), &rivals)))
        };
        (name.to_owned(), columns().iter().map(field).collect())
    };
    rows.into_iter().map(row).collect()
}

fn by_threads(found: &Standings) -> Table {
    let threads = columns();
    let numbers = threads.iter().map(|threads| Column::number(threads));
    let mut table = Table::new([Column::words("machine")].into_iter().chain(numbers));
    for (name, values) in fields(found.kind, &found.outcomes.iter().collect::<Vec<_>>()) {
        let cells = values.into_iter().map(|value| Cell::from(value.map_or(String::new(), ratio)));
        table.row([Cell::from(name.as_str())].into_iter().chain(cells));
    }
    table
}

fn worst(found: &Standings) -> Table {
    let (usual, rivals) = (found.kind.usual(), found.kind.rivals());
    let mut behind: Vec<(f64, &Outcome)> = found
        .outcomes
        .iter()
        .filter_map(|one| Some((one.over_best(usual, &rivals)?, one)))
        .collect();
    behind.sort_by(|a, b| a.0.total_cmp(&b.0));
    let numbers = [usual, "of best"].map(Column::number);
    let words = ["best", "where"].map(Column::words);
    let mut table = Table::new(numbers.into_iter().chain(words));
    for (behind, outcome) in behind.into_iter().take(WORST) {
        let (Some(own), Some(best)) = (outcome.run(usual), outcome.best_but(usual, &rivals)) else {
            continue;
        };
        table.row([
            Cell::from(quantity(own.throughput, "op/s")),
            ratio(behind).into(),
            format!("{}, {}", best.lock, quantity(best.throughput, "op/s").trim()).into(),
            outcome.place.to_string().into(),
        ]);
    }
    table
}

/// A heat map for each length of sections: machines by threads.
pub fn figure(found: &Standings) -> Figure {
    let mut sections: Vec<(f64, Vec<&Outcome>)> = Vec::new();
    for outcome in &found.outcomes {
        let length = outcome.place.point.section.mean_ns;
        match sections.iter_mut().find(|(known, _)| *known == length) {
            Some((_, members)) => members.push(outcome),
            None => sections.push((length, vec![outcome])),
        }
    }
    sections.sort_by(|a, b| a.0.total_cmp(&b.0));
    let panel = |(_, members): (f64, Vec<&Outcome>)| {
        Panel::Map(Map {
            title: format!("sections of {}", members[0].place.section_in_words()),
            axis: Axis {
                name: "threads".into(),
                places: columns(),
                measures: "of the best other lock".into(),
            },
            rows: fields(found.kind, &members),
        })
    };
    Figure {
        title: format!("{}: throughput over the best other lock", found.kind.usual()),
        panels: sections.into_iter().map(panel).collect(),
    }
}
