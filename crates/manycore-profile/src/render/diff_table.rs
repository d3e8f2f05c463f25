//! Two profiles beside each other, for a terminal.

use std::fmt::Write;

use manycore_measure::{Cell, Column, Table, Tone, duration, ratio};

use super::diff::{Change, Diff, Rates};

/// The table, and its caveats.
pub fn text(diff: &Diff, top: usize, new: fn(Vec<Column>) -> Table) -> String {
    let mut text = String::new();
    for (what, side) in [("before", &diff.before), ("after ", &diff.after)] {
        let ran = duration(side.wall * 1e9);
        let _ =
            writeln!(text, "{what}  {}, lock {}, ran {}", side.command, side.lock, ran.trim_end());
    }
    let mut table = new(vec![
        Column::words("lock"),
        Column::words(""),
        Column::number("wait s/s"),
        Column::number("acquired/s"),
        Column::number("contended"),
        Column::number("hold"),
    ]);
    let total = Change {
        name: "all locks of the program".into(),
        short: "all locks of the program".into(),
        kind: String::new(),
        is_kernel: false,
        before: Some(diff.before.rates),
        after: Some(diff.after.rates),
        ratio: diff.ratio,
    };
    for change in std::iter::once(&total).chain(diff.locks.iter().take(top)) {
        rows(&mut table, change);
    }
    let _ = writeln!(text, "\n{table}");
    if let Some(more) = diff.locks.len().checked_sub(top).filter(|more| *more > 0) {
        let _ = writeln!(text, "{more} more locks, which changed less (--top, --json)");
    }
    let _ = writeln!(text, "\n{}", diff.caveats.join("\n"));
    text
}

/// A lock's rows: before, after, and the change if both are known.
fn rows(table: &mut Table, change: &Change) {
    let kernel = if change.is_kernel { ", kernel" } else { "" };
    let about = match (change.kind.as_str(), change.before, change.after) {
        ("", ..) => String::new(),
        (kind, None, _) => format!("  {kind}{kernel}, new"),
        (kind, _, None) => format!("  {kind}{kernel}, gone"),
        (kind, ..) => format!("  {kind}{kernel}"),
    };
    let mut names = [clipped(&change.short), about].into_iter();
    let mut name = || Cell::from(names.next().unwrap_or_default());
    for (what, rates) in [("before", change.before), ("after", change.after)] {
        if let Some(rates) = rates {
            let mut row = vec![name(), Cell::new(what, Tone::Faint)];
            row.extend(figures(&rates));
            table.row(row);
        }
    }
    if change.before.is_none() || change.after.is_none() {
        table.row([name()]);
        return;
    }
    let of = &change.ratio;
    let mut row = vec![name(), Cell::new("ratio", Tone::Faint)];
    let ratios = [of.wait, of.acquired, of.contended_share, of.hold_mean];
    row.extend(ratios.map(|one| Cell::from(one.map(ratio).unwrap_or_default())));
    table.row(row);
}

fn figures(rates: &Rates) -> [Cell; 4] {
    let share = |share: f64| format!("{:.2} %", 100.0 * share);
    [
        format!("{:.3}", rates.wait),
        rates.acquired.map(|acquired| format!("{acquired:.0}")).unwrap_or_default(),
        rates.contended_share.map(share).unwrap_or_default(),
        rates.hold_mean_ns.map(|ns| duration(ns as f64)).unwrap_or_default(),
    ]
    .map(Cell::from)
}

/// A name that leaves room for figures. Its end is kept, because that is the most informative part.
fn clipped(name: &str) -> String {
    const ROOM: usize = 44;
    let length = name.chars().count();
    match length > ROOM {
        true => "..".to_owned() + &name.chars().skip(length - ROOM + 2).collect::<String>(),
        false => name.to_owned(),
    }
}
