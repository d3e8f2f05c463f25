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
  next      whom a release serves: whoever comes at the right moment (barging); strictly
            the one who has waited longest (fifo !); or who is next in a queue of another
            order (queued !)
  waiting   whether a waiter gives up its CPU (blocks) or keeps it (spins)
  for       any program, by `manycore run`; or, where the lock is too large for a pthread
            mutex, only those that are written with the library

Warning:
  A lock marked ! is slow by its nature when more threads run than there are CPUs:
  each hand-off waits until the scheduler runs the one thread whose turn it is.
";

/// List the locks: what they are, whom they serve next, where they were published
#[derive(Args, Debug)]
#[command(after_long_help = NOTES)]
pub struct Options {
    /// Only the names of those that `run` can put into a program, one a line
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
        let inline = locks.iter().filter(|lock| spec::is_inline(lock));
        return print(&inline.map(|lock| format!("{}\n", lock.name)).collect::<String>());
    }
    if options.json {
        return print(&format!("{:#}\n", as_json(&locks)));
    }
    let warning = match locks.iter().any(|lock| lock.order.hands_over()) {
        true => "\n! slow by its nature when more threads run than there are CPUs\n",
        false => "",
    };
    print(&format!("{}\n{warning}", as_table(&locks)))
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Fifo => "fifo",
        Order::Queued => "queued",
        Order::Barging => "barging",
    }
}

fn as_json(locks: &[LockInfo]) -> serde_json::Value {
    let lock = |lock: &LockInfo| {
        json!({
            "name": lock.name,
            "summary": lock.summary,
            "order": order(lock.order),
            "blocks": lock.blocks,
            "inline": spec::is_inline(lock),
            "source": lock.source,
        })
    };
    json!({ "schema": 1, "locks": locks.iter().map(lock).collect::<Vec<_>>() })
}

fn as_table(locks: &[LockInfo]) -> Table {
    let mut table =
        Table::new(["lock", "what it is", "next", "waiting", "for", "source"].map(Column::words));
    for lock in locks {
        let next = match lock.order {
            next if next.hands_over() => Cell::new(format!("{} !", order(next)), Tone::Bad),
            next => order(next).into(),
        };
        let waiting = if lock.blocks { "blocks" } else { "spins" };
        table.row([
            lock.name.into(),
            lock.summary.into(),
            next,
            waiting.into(),
            if spec::is_inline(lock) { "any" } else { "library" }.into(),
            Cell::new(lock.source, Tone::Faint),
        ]);
    }
    table
}
