//! Tables of the study of mutexes on real machines.

use manycore_measure::{Cell, Claim, Column, Table, significant};

use super::judge::{self, Summary};
use super::published::MACHINES;
use super::{Compared, MutexAccuracy};

/// For each machine the published times with the simulated ones, the errors, and the claims.
pub fn render(found: &MutexAccuracy) -> String {
    let of_machine = |(measured, model): (&str, &str)| {
        let members: Vec<&Compared> =
            found.compared.iter().filter(|one| one.published.model == model).collect();
        (!members.is_empty()).then(|| {
            format!(
                "{measured} and {model}: ns an acquisition, published / simulated, by tasks\n{}\n",
                times(&members)
            )
        })
    };
    let machines: Vec<String> = MACHINES.into_iter().filter_map(of_machine).collect();
    format!(
        "{}\nErrors\n{}\n\n{}\n",
        machines.join("\n"),
        errors(&found.compared),
        Claim::table(&found.claims)
    )
}

/// A table of times. Rows are locks of a series, columns are numbers of tasks.
fn times(members: &[&Compared]) -> Table {
    let mut tasks: Vec<u32> = members.iter().map(|one| one.published.tasks).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let numbers = tasks.iter().map(|tasks| Column::number(&tasks.to_string()));
    let words = ["series", "lock"].map(Column::words);
    let mut table = Table::new(words.into_iter().chain(numbers).chain([Column::number("knee")]));
    for row in rows(members) {
        let first = &row[0].published;
        let mut cells = vec![Cell::from(first.series.as_str()), first.lock.into()];
        for tasks in &tasks {
            let of_tasks = row.iter().find(|one| one.published.tasks == *tasks);
            let short = |ns| significant(ns, 3);
            cells.push(Cell::from(of_tasks.map_or(String::new(), |one| {
                format!("{} / {}", short(one.published.ns), short(one.simulated))
            })));
        }
        let knee = |time: fn(&Compared) -> f64| {
            knee(&row, time).map_or("none".to_owned(), |tasks| tasks.to_string())
        };
        let knees = format!("{} / {}", knee(|one| one.published.ns), knee(|one| one.simulated));
        cells.push(knees.into());
        table.row(cells);
    }
    table
}

/// For each lock and series: its points, by tasks.
fn rows<'a>(members: &[&'a Compared]) -> Vec<Vec<&'a Compared>> {
    let mut rows: Vec<Vec<&Compared>> = Vec::new();
    let name = |one: &Compared| (one.published.series.clone(), one.published.lock);
    for one in members {
        match rows.iter_mut().find(|row| name(row[0]) == name(one)) {
            Some(row) => row.push(one),
            None => rows.push(vec![one]),
        }
    }
    rows.iter_mut().for_each(|row| row.sort_by_key(|one| one.published.tasks));
    rows
}

/// The fewest tasks with which an acquisition takes twice as long as with one.
fn knee(row: &[&Compared], time: fn(&Compared) -> f64) -> Option<u32> {
    let alone = row.iter().find(|one| one.published.tasks == 1).map(|one| time(one))?;
    let slow = row.iter().find(|one| time(one) >= 2.0 * alone)?;
    Some(slow.published.tasks)
}

/// Errors by machine, by lock, and by both.
fn errors(compared: &[Compared]) -> Table {
    let numbers = ["points", "median factor", "p90", "worst"].map(Column::number);
    let words = ["machine", "lock"].map(Column::words);
    let last = [Column::words("worst is"), Column::number("order agrees")];
    let mut table = Table::new(words.into_iter().chain(numbers).chain(last));
    let mut locks: Vec<&str> = compared.iter().map(|one| one.published.lock).collect();
    locks.sort_unstable();
    locks.dedup();
    let mut row = |machine: Option<&str>, lock: Option<&str>| {
        let is_asked = |one: &&Compared| {
            machine.is_none_or(|name| one.published.model == name)
                && lock.is_none_or(|name| one.published.lock == name)
        };
        let members: Vec<&Compared> = compared.iter().filter(is_asked).collect();
        let Summary { count, median, p90 } = judge::summary(members.iter().copied());
        let worst = members.iter().filter(|one| one.counts());
        let Some(worst) = worst.max_by(|a, b| a.factor().total_cmp(&b.factor())) else { return };
        let (same, pairs) = judge::order(members.iter().copied());
        let short = |value: f64| significant(value, 3);
        table.row([
            Cell::from(machine.unwrap_or("all")),
            lock.unwrap_or("all").into(),
            count.to_string().into(),
            median.map_or(String::new(), short).into(),
            p90.map_or(String::new(), short).into(),
            short(worst.factor()).into(),
            described(worst).into(),
            if pairs == 0 { String::new() } else { format!("{same} of {pairs}") }.into(),
        ]);
    };
    for (_, machine) in MACHINES {
        locks.iter().for_each(|lock| row(Some(machine), Some(lock)));
        row(Some(machine), None);
    }
    locks.iter().for_each(|lock| row(None, Some(lock)));
    row(None, None);
    table
}

fn described(worst: &Compared) -> String {
    let ratio = significant(worst.simulated / worst.published.ns, 3);
    format!("{}, {} tasks: {ratio} of published", worst.published.lock, worst.published.tasks)
}
