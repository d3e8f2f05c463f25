//! The results as a page that loads nothing from elsewhere. For each set it has the source,
//! pictures of published and simulated curves, and the findings.

use std::fmt::{self, Write};

use manycore_measure::{Axis, Claim, Figure, Line, Lines, Panel, Value, escaped, significant};

use super::factor::{curves, factors};
use super::render::{lines, time};
use super::set::PublishedSet;
use super::tally::{Tally, share};
use super::{Compared, PublishedAccuracy};

const STYLE: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 14px } td, th { padding: .2rem .6rem; text-align: left }
tr:nth-child(even) { background: #f4f4f4 } .source { color: #555 } svg { max-width: 100% }
";

/// The page of all sets.
pub fn page(found: &PublishedAccuracy) -> String {
    let mut page = String::new();
    write(found, &mut page).expect("writing to a string cannot fail");
    page
}

fn write(found: &PublishedAccuracy, page: &mut String) -> fmt::Result {
    let title = "The simulator beside real machines";
    writeln!(page, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">")?;
    writeln!(page, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(page, "<title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>")?;
    claims(&found.claims, page)?;
    for (number, set) in found.sets.iter().enumerate() {
        let members: Vec<Compared> =
            found.compared.iter().filter(|one| one.set == number).cloned().collect();
        if !members.is_empty() {
            section(set, &members, page)?;
        }
    }
    writeln!(page, "</html>")
}

fn claims(claims: &[Claim], page: &mut String) -> fmt::Result {
    writeln!(page, "<table>\n<tr><th>asked<th>found<th>verdict<th>of")?;
    for claim in claims {
        let found = claim.value.map_or("none".to_owned(), |found| significant(found, 3));
        let cells = [escaped(&claim.text), found, claim.verdict.to_string(), escaped(&claim.note)];
        writeln!(page, "<tr><td>{}", cells.join("<td>"))?;
    }
    writeln!(page, "</table>")
}

fn section(set: &PublishedSet, members: &[Compared], page: &mut String) -> fmt::Result {
    let Tally { factors, within, pairs, agree, .. } = Tally::of(members);
    let counts =
        |part, all| share(part, all).map_or("none".to_owned(), |_| format!("{part} of {all}"));
    writeln!(page, "<section id=\"{0}\">\n<h2>{0}</h2>", escaped(&set.name))?;
    writeln!(page, "<p class=\"source\">{} Grade {:?}.</p>", escaped(&set.source), set.grade)?;
    writeln!(page, "<p>Measured: {}</p>", escaped(set.workload.trim()))?;
    writeln!(page, "<p>Simulated: {}</p>", escaped(set.simulated.trim()))?;
    writeln!(
        page,
        "<p>{} factors are within x{}, {} pairs are in the measured order.{}</p>",
        counts(within, factors),
        set.grade.band(),
        counts(agree, pairs),
        if set.calibrates {
            " Constants of models come from this set: it is not judged."
        } else {
            ""
        }
    )?;
    pictures(set, members, page)?;
    deviations(set, members, page)?;
    for finding in &set.findings {
        writeln!(page, "<p>{}</p>", escaped(finding))?;
    }
    writeln!(page, "</section>")
}

/// A picture for each machine and case. Simulated curves have thin lines.
fn pictures(set: &PublishedSet, members: &[Compared], page: &mut String) -> fmt::Result {
    for (place, machine) in set.machines.iter().enumerate() {
        let panels: Vec<Panel> = (0..set.cases.len())
            .filter_map(|case| {
                let there: Vec<Compared> = members
                    .iter()
                    .filter(|one| (one.point.machine, one.point.case) == (place, case))
                    .cloned()
                    .collect();
                panel(set, &set.cases[case].name, &there)
            })
            .collect();
        if !panels.is_empty() {
            let title = format!("{} and {}", machine.name, machine.model);
            let svg = Figure { title, panels }.svg();
            // The picture is a document of its own, with a head that is valid only in a file.
            writeln!(page, "{}", svg.find("<svg").map_or("", |start| &svg[start..]))?;
        }
    }
    Ok(())
}

/// Rates relative to the first point of each curve, published and simulated. The interval of a
/// published value is the band of its set.
fn panel(set: &PublishedSet, case: &str, there: &[Compared]) -> Option<Panel> {
    let mut threads: Vec<u32> = there.iter().map(|one| one.point.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    if threads.len() < 2 {
        return None;
    }
    let mut drawn = Vec::new();
    for curve in curves(there) {
        let name = &set.subjects[curve[0].point.subject].name;
        let line = |rate: fn(&Compared) -> f64, suffix: &str, band: Option<f64>| {
            let first = rate(curve[0]);
            let at = |count: &u32| {
                let one = curve.iter().find(|one| one.point.threads == *count)?;
                let value = rate(one) / first;
                let interval = band.map(|band| (value / band, value * band));
                Some(Value { value, interval })
            };
            Line {
                name: format!("{name}{suffix}"),
                values: threads.iter().map(at).collect(),
                is_ideal: band.is_none(),
            }
        };
        drawn.push(line(Compared::published, "", Some(set.grade.band())));
        drawn.push(line(Compared::simulated, ", simulated", None));
    }
    Some(Panel::Lines(Lines {
        title: case.to_owned(),
        axis: Axis {
            name: "threads".to_owned(),
            places: threads.iter().map(u32::to_string).collect(),
            measures: "times the rate of the first point".to_owned(),
        },
        lines: drawn,
    }))
}

/// The factors outside the band, with where simulated time went and how far lines moved.
fn deviations(set: &PublishedSet, members: &[Compared], page: &mut String) -> fmt::Result {
    let mut off: Vec<_> =
        factors(members).into_iter().filter(|factor| !factor.is_within()).collect();
    off.sort_by(|a, b| b.off().total_cmp(&a.off()));
    if off.is_empty() {
        return Ok(());
    }
    let heads = [
        "machine",
        "case",
        "subject",
        "factor",
        "threads",
        "published",
        "simulated",
        "off",
        "simulated time",
        "lines an operation",
    ];
    writeln!(page, "<table>\n<tr><th>{}", heads.join("<th>"))?;
    for factor in off {
        let one = factor.at;
        let cells = [
            escaped(&set.machines[one.point.machine].name),
            escaped(&set.cases[one.point.case].name),
            escaped(&set.subjects[one.point.subject].name),
            factor.of.name().to_owned(),
            one.point.threads.to_string(),
            significant(factor.published, 3),
            significant(factor.simulated, 3),
            significant(factor.off(), 3),
            time(&one.sight),
            lines(&one.sight),
        ];
        writeln!(page, "<tr><td>{}", cells.join("<td>"))?;
    }
    writeln!(page, "</table>")
}
