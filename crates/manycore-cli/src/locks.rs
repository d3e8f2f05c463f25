//! `manycore locks`: the algorithms.

use clap::Args;
use manycore::{LockInfo, Order};
use manycore_report::{Cell, Column, Table, Tone};
use serde_json::json;

use crate::failure::Result;
use crate::spec;
use crate::terminal::print;

const NOTES: &str = "\
Examples:
  manycore locks
  for lock in $(manycore locks --plain); do manycore run --lock $lock -- ./program; done

Columns:
  next      whom a release serves: whoever comes at the right moment (barging), or
            strictly the one who has waited longest (fifo !)
  waiting   whether a waiter gives up its CPU (blocks) or keeps it (spins)

Warning:
  A lock marked ! is slow by its nature when more threads run than there are CPUs:
  each hand-off waits until the scheduler runs the one thread whose turn it is.
";

/// List the locks: what they are, whom they serve next, where they were published
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Only the names, one a line
    #[arg(long)]
    plain: bool,
    /// As JSON
    #[arg(long, conflicts_with = "plain")]
    json: bool,
}

/// Prints the list.
pub fn run(options: &Options) -> Result<()> {
    let locks = spec::all();
    if options.plain {
        return print(&locks.iter().map(|lock| format!("{}\n", lock.name)).collect::<String>());
    }
    if options.json {
        return print(&format!("{:#}\n", as_json(&locks)));
    }
    let warning = match locks.iter().any(|lock| lock.order == Order::Fifo) {
        true => "\n! slow by its nature when more threads run than there are CPUs\n",
        false => "",
    };
    print(&format!("{}\n{warning}", as_table(&locks)))
}

fn as_json(locks: &[LockInfo]) -> serde_json::Value {
    let lock = |lock: &LockInfo| {
        json!({
            "name": lock.name,
            "summary": lock.summary,
            "order": if lock.order == Order::Fifo { "fifo" } else { "barging" },
            "blocks": lock.blocks,
            "source": lock.source,
        })
    };
    json!({ "schema": 1, "locks": locks.iter().map(lock).collect::<Vec<_>>() })
}

fn as_table(locks: &[LockInfo]) -> Table {
    let mut table =
        Table::new(["lock", "what it is", "next", "waiting", "source"].map(Column::words));
    for lock in locks {
        let order = match lock.order {
            Order::Fifo => Cell::new("fifo !", Tone::Bad),
            Order::Barging => "barging".into(),
        };
        let waiting = if lock.blocks { "blocks" } else { "spins" };
        table.row([
            lock.name.into(),
            lock.summary.into(),
            order,
            waiting.into(),
            Cell::new(lock.source, Tone::Faint),
        ]);
    }
    table
}
