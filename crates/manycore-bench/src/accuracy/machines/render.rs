//! Tables of the study of real machines.

use std::collections::BTreeMap;

use manycore_measure::{Cell, Claim, Column, Table, significant};

use super::factor::{Factor, Of, curves, factors, knee};
use super::set::PublishedSet;
use super::tally::{Tally, judged, kinds, share};
use super::{Compared, PublishedAccuracy, mutexes};

/// For each set and machine the published and the simulated values; then the agreement, and the
/// claims.
pub fn render(found: &PublishedAccuracy) -> String {
    let mut text = String::new();
    for (number, set) in found.sets.iter().enumerate() {
        let members: Vec<&Compared> =
            found.compared.iter().filter(|one| one.set == number).collect();
        for (place, machine) in set.machines.iter().enumerate() {
            let there: Vec<&Compared> =
                members.iter().copied().filter(|one| one.point.machine == place).collect();
            if !there.is_empty() {
                text += &format!(
                    "{} ({}, grade {:?}{}), {} and {}: {}, published / simulated, by threads\n{}\n",
                    set.name,
                    set.kind,
                    set.grade,
                    if set.calibrates { ", constants come from it" } else { "" },
                    machine.name,
                    machine.model,
                    set.unit,
                    values(set, &there)
                );
            }
        }
    }
    if let Some(mutexes) = &found.mutexes {
        text += &mutexes::render(mutexes);
    }
    if found.compared.is_empty() {
        return text;
    }
    format!(
        "{text}What agrees, of the sets that are judged\n{}\n\nFarthest off\n{}\n\n{}\n",
        agreement(found),
        farthest(found),
        Claim::table(&found.claims)
    )
}

/// A table of values. Rows are subjects in a case, columns are numbers of threads.
fn values(set: &PublishedSet, there: &[&Compared]) -> Table {
    let mut threads: Vec<u32> = there.iter().map(|one| one.point.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let words = ["case", "subject", "here"].map(Column::words);
    let numbers = threads.iter().map(|count| Column::number(&count.to_string()));
    let mut table = Table::new(words.into_iter().chain(numbers).chain([Column::number("knee")]));
    let owned: Vec<Compared> = there.iter().map(|one| (*one).clone()).collect();
    for curve in curves(&owned) {
        let point = &curve[0].point;
        let subject = &set.subjects[point.subject];
        let mut cells = vec![
            Cell::from(set.cases[point.case].name.as_str()),
            subject.name.as_str().into(),
            subject.ours.as_deref().unwrap_or_default().into(),
        ];
        for count in &threads {
            let here = curve.iter().find(|one| one.point.threads == *count);
            let short = |value| significant(value, 3);
            cells.push(Cell::from(here.map_or(String::new(), |one| {
                format!("{} / {}", short(one.point.value), short(one.simulated_value))
            })));
        }
        let knees = (knee(&curve, Compared::published), knee(&curve, Compared::simulated));
        cells.push(format!("{} / {}", knees.0, knees.1).into());
        table.row(cells);
    }
    table
}

/// The agreement by kind of set, by machine, and by kind of factor.
fn agreement(found: &PublishedAccuracy) -> Table {
    let numbers = ["factors", "within", "median off", "p90", "pairs in order", "knees"];
    let columns = [Column::words("of")].into_iter().chain(numbers.map(Column::number));
    let mut table = Table::new(columns);
    let all = judged(&found.compared, None);
    for kind in kinds(&found.compared) {
        table.row(row(&kind.to_string(), &Tally::of(&judged(&found.compared, Some(kind)))));
    }
    let mut machines: BTreeMap<&str, Vec<Compared>> = BTreeMap::new();
    for one in &all {
        let machine = &found.sets[one.set].machines[one.point.machine];
        machines.entry(&machine.model).or_default().push(one.clone());
    }
    for (name, members) in machines {
        table.row(row(name, &Tally::of(&members)));
    }
    for of in Of::ALL {
        table.row(row(of.name(), &Tally::of_factors(factors(&all).iter().filter(|f| f.of == of))));
    }
    table.row(row("all", &Tally::of(&all)));
    table
}

fn row(name: &str, tally: &Tally) -> [Cell; 7] {
    let short = |value: Option<f64>| value.map_or(String::new(), |value| significant(value, 3));
    let of = |part: usize, all: usize| match share(part, all) {
        Some(share) => format!("{part} of {all} ({:.0} %)", 100.0 * share),
        None => String::new(),
    };
    [
        name.into(),
        tally.factors.to_string().into(),
        of(tally.within, tally.factors).into(),
        short(tally.median).into(),
        short(tally.p90).into(),
        of(tally.agree, tally.pairs).into(),
        of(tally.knees, tally.curves).into(),
    ]
}

/// How many of the factors with the largest errors are shown.
const SHOWN: usize = 15;

/// The factors with the largest errors, with where simulated time went.
fn farthest(found: &PublishedAccuracy) -> Table {
    let words = ["set", "machine", "case", "subject", "factor"].map(Column::words);
    let numbers = ["threads", "published", "simulated", "off"].map(Column::number);
    let looked = [Column::words("simulated time"), Column::words("lines an operation")];
    let mut table = Table::new(words.into_iter().chain(numbers).chain(looked));
    let judged = judged(&found.compared, None);
    let mut factors: Vec<Factor> =
        factors(&judged).into_iter().filter(|factor| !factor.is_within()).collect();
    factors.sort_by(|a, b| b.off().total_cmp(&a.off()));
    for factor in factors.iter().take(SHOWN) {
        let one = factor.at;
        let set = &found.sets[one.set];
        let short = |value| significant(value, 3);
        table.row([
            Cell::from(set.name.as_str()),
            set.machines[one.point.machine].name.as_str().into(),
            set.cases[one.point.case].name.as_str().into(),
            set.subjects[one.point.subject].name.as_str().into(),
            factor.of.name().into(),
            one.point.threads.to_string().into(),
            short(factor.published).into(),
            short(factor.simulated).into(),
            short(factor.off()).into(),
            time(&one.sight).into(),
            lines(&one.sight).into(),
        ]);
    }
    table
}

/// The parts of the threads' time, if they are at least a twentieth.
pub(super) fn time(sight: &BTreeMap<String, f64>) -> String {
    let parts = sight.iter().filter_map(|(name, share)| Some((name.strip_prefix("time_")?, share)));
    let large = parts.filter(|(_, share)| **share >= 5.0);
    large.map(|(name, share)| format!("{name} {share:.0} %")).collect::<Vec<_>>().join(", ")
}

/// Line transfers for each operation, by class of distance, and loads from memory.
pub(super) fn lines(sight: &BTreeMap<String, f64>) -> String {
    let with = |prefix: &str, short: &str| -> Vec<String> {
        let named =
            sight.iter().filter_map(|(name, count)| Some((name.strip_prefix(prefix)?, count)));
        let some = named.filter(|(_, count)| **count >= 0.005);
        some.map(|(class, count)| format!("{short}{class}: {}", significant(*count, 2))).collect()
    };
    [with("transfers_", ""), with("memory_", "memory ")].concat().join(", ")
}
