//! `manycore diff`: two profiles, lock by lock.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use manycore_measure::{Cell, Column, Table, Tone, duration, ratio};
use manycore_view::diff::{self, Change, Diff, Rates};
use manycore_view::read;

use manycore_launch::failure::{Failure, Result};
use manycore_launch::terminal::print;

const NOTES: &str = "\
Examples:
  manycore diff before.json after.json
  manycore diff --top 30 before.json after.json
  manycore diff --json before.json after.json | jq '.locks[0]'

Output:
  Each lock with what was before, what is after, and how many times as much that is;
  most changed first.

  wait        threads that waited for it, on average: seconds waited a second
  acquired    acquisitions a second
  contended   share of the acquisitions that had to wait
  hold        the mean time that it was held

  Locks are the same if name and kind are; or, after a rebuild, without offset and
  line, if that leaves no doubt. Runs may differ in length, so all are rates.

Exit status:
  0   done, whatever the difference is
  2   a file is no profile: the line on stderr says which, and what to do
";

/// Compare two profiles lock by lock: what is waited for more, or less, and what is new
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// What `manycore profile --json` wrote before the change
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// What it wrote after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Write all of it as JSON to stdout, instead of the table
    #[arg(long)]
    json: bool,
    /// Locks in the table
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,
}

/// Compares them.
pub fn run(options: &Options) -> Result<()> {
    let diff = diff::diff(&read::from_file(&options.before)?, &read::from_file(&options.after)?);
    if options.json {
        let text = serde_json::to_string_pretty(&diff)
            .map_err(|error| Failure::failed(format!("cannot write the difference: {error}")))?;
        return print(&(text + "\n"));
    }
    print(&text(&diff, options.top.into(), Table::new))
}

/// The table, and what is to be said of it.
fn text(diff: &Diff, top: usize, new: fn(Vec<Column>) -> Table) -> String {
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

/// A lock's rows: before, after, and by how much, where both are known.
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

/// A name that leaves room for figures; its end tells most.
fn clipped(name: &str) -> String {
    const ROOM: usize = 44;
    let length = name.chars().count();
    match length > ROOM {
        true => "..".to_owned() + &name.chars().skip(length - ROOM + 2).collect::<String>(),
        false => name.to_owned(),
    }
}
