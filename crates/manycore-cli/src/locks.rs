//! `manycore locks`: the algorithms.

use clap::Args;
use manycore::{LockInfo, Order};
use manycore_measure::{Cell, Column, Table, Tone};
use serde_json::json;

use manycore_launch::failure::Result;
use manycore_launch::spec;
use manycore_launch::terminal::print;

const NOTES: &str = "\
Examples:
  manycore locks
  for lock in $(manycore locks --plain); do manycore run --lock $lock -- ./program; done

Columns:
  next      whom a release serves: the thread that comes at the right moment (barging); strictly
            the one who has waited longest (fifo !); or who is next in a queue of another
            order (queued !)
  waiting   whether a waiter gives up its CPU (blocks) or keeps it (spins)
  for       any program, by `manycore run`; or, where the lock is too large for a pthread
            mutex, only those that are written with the library

Reader-writer locks:
  What `run` puts into a program in place of each pthread_rwlock_t is always adaptive-rw,
  whatever lock is chosen for the mutexes. The others are for programs that are written
  with the library, and for `manycore bench lock --reads`.

Warning:
  A lock marked ! is slow by its nature when more threads run than there are CPUs:
  each hand-off waits until the scheduler runs the one thread whose turn it is.

Exit status:
  0   done
  2   bad usage
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
    let (locks, rw_locks) = (spec::all(), spec::all_rw());
    if options.plain {
        let inline = locks.iter().filter(|lock| spec::is_inline(lock));
        return print(&inline.map(|lock| format!("{}\n", lock.name)).collect::<String>());
    }
    if options.json {
        let json = json!({
            "schema": 1,
            "locks": as_json(&locks, spec::is_inline),
            "rw_locks": as_json(&rw_locks, is_of_programs),
        });
        return print(&format!("{json:#}\n"));
    }
    let warning = match locks.iter().any(|lock| lock.order.hands_over()) {
        true => "\n! slow by its nature when more threads run than there are CPUs\n",
        false => "",
    };
    let table = as_table("lock", &locks, spec::is_inline);
    let rw_table = as_table("reader-writer lock", &rw_locks, is_of_programs);
    print(&format!("{table}\n{warning}\n{rw_table}\n"))
}

/// Whether it is the reader-writer lock that `run` puts into programs.
fn is_of_programs(lock: &LockInfo) -> bool {
    lock.name == spec::RW_LOCK_OF_PROGRAMS.name
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Fifo => "fifo",
        Order::Queued => "queued",
        Order::Barging => "barging",
    }
}

fn as_json(locks: &[LockInfo], is_inline: impl Fn(&LockInfo) -> bool) -> serde_json::Value {
    let lock = |lock: &LockInfo| {
        json!({
            "name": lock.name,
            "summary": lock.summary,
            "order": order(lock.order),
            "blocks": lock.blocks,
            "inline": is_inline(lock),
            "source": lock.source,
        })
    };
    locks.iter().map(lock).collect()
}

fn as_table(title: &str, locks: &[LockInfo], is_inline: impl Fn(&LockInfo) -> bool) -> Table {
    let columns = [title, "what it is", "next", "waiting", "for", "source"];
    let mut table = Table::new(columns.map(Column::words));
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
            if is_inline(lock) { "any" } else { "library" }.into(),
            Cell::new(lock.source, Tone::Faint),
        ]);
    }
    table
}
