//! The tables of locks and of condition variables.

use manycore_measure::{Cell, Column, Tone, significant};

use super::view::{NUMBERS, Sort, View, ns, rest, shortened, times};
use crate::profile::{Condition, Held, Lock, Origin};
use crate::text::percent;

pub fn locks(all: &[Lock], view: View, title: &str) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut sorted: Vec<&Lock> = all.iter().collect();
    sorted.sort_by(|a, b| rank(b, view.sort).total_cmp(&rank(a, view.sort)));
    let mut table = (view.table)(vec![
        Column::words("lock"),
        Column::number("acquired"),
        Column::number("contended"),
        Column::number("moved"),
        Column::words(""),
        Column::number("total"),
        Column::number("mean"),
        Column::number("p99"),
        Column::number("max"),
    ]);
    for lock in sorted.iter().take(view.top) {
        let counts = match !lock.is_counted() {
            // Only its waits are seen.
            true => [String::new(), lock.contended.to_string(), String::new()],
            false => [
                lock.acquired.to_string(),
                percent(lock.contended_share),
                percent(lock.moved_share()),
            ],
        };
        let [acquired, contended, moved] = counts.map(Cell::from);
        let [total, mean, p99, max] = times(&lock.wait, ns(lock.wait.total_ns));
        table.row([
            title_of(lock, view.name_width(NUMBERS)).into(),
            acquired,
            contended,
            moved,
            "wait".into(),
            total,
            mean,
            p99,
            max,
        ]);
        let [total, mean, p99, max] =
            times(&lock.hold, if lock.is_made() { String::new() } else { held(lock) });
        let blank = || Cell::from("");
        let about = Cell::new(about(lock, view.name_width(NUMBERS)), Tone::Faint);
        table.row([about, blank(), blank(), blank(), "hold".into(), total, mean, p99, max]);
        if let Some(place) = other_place(lock, view.name_width(NUMBERS)) {
            table.row([Cell::new(place, Tone::Faint)]);
        }
    }
    let order = match view.sort {
        Sort::Wait => "most waited first",
        Sort::Contended => "most contended first",
        Sort::Acquired => "most acquired first",
        Sort::Hold => "longest held first",
    };
    format!("{title}, {order}\n{table}\n{}\n", rest(all.len(), view.top, "locks"))
}

fn rank(lock: &Lock, sort: Sort) -> f64 {
    match sort {
        Sort::Wait => lock.wait.total_ns as f64,
        Sort::Contended => lock.contended as f64,
        Sort::Acquired => lock.acquired as f64,
        Sort::Hold => lock.held_ns().unwrap_or(0.0),
    }
}

pub fn conditions(all: &[Condition], view: View) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = (view.table)(vec![
        Column::words("condition variable"),
        Column::number("waits"),
        Column::number("timeouts"),
        Column::number("total"),
        Column::number("mean"),
        Column::number("p99"),
        Column::number("max"),
    ]);
    for condition in all.iter().take(view.top) {
        let place = if condition.origin == Origin::Futex { "in " } else { "" };
        let name = match condition.objects {
            1 => format!("{place}{}", condition.short),
            n => format!("{place}{} ({n} objects)", condition.short),
        };
        let [total, mean, p99, max] = times(&condition.wait, ns(condition.wait.total_ns));
        table.row([
            shortened(&name, view.name_width(NUMBERS)).into(),
            condition.waits.to_string().into(),
            condition.timeouts.to_string().into(),
            total,
            mean,
            p99,
            max,
        ]);
    }
    let rest = rest(all.len(), view.top, "condition variables");
    format!(
        "Condition variables, most waited first: waiting for work is no loss\n{table}\n{rest}\n"
    )
}

/// The total hold time: its 95 % confidence interval; or "about", if the ends are the same to two
/// digits.
fn held(lock: &Lock) -> String {
    let about = || lock.held_ns().map_or_else(String::new, |held| format!("~{}", ns(held as u64)));
    let Some(Held { low_ns, high_ns, .. }) = lock.held else { return about() };
    let high = ns(high_ns);
    let Some((_, unit)) = high.trim_end().rsplit_once(' ') else { return about() };
    let in_unit =
        [("ns", 1.0), ("us", 1e3), ("ms", 1e6)].into_iter().find(|(name, _)| *name == unit);
    let each = in_unit.map_or(1e9, |(_, each)| each);
    let [low, most] = [low_ns, high_ns].map(|ns| significant(ns as f64 / each, 2));
    if low == most { about() } else { format!("{low}-{most} {unit}") }
}

/// What a lock is called, in so much room.
fn title_of(lock: &Lock, width: usize) -> String {
    let (what, name) = lock.title_parts();
    prefixed(what, name, width)
}

/// The other place that shows a lock's purpose, if one is known.
fn other_place(lock: &Lock, width: usize) -> Option<String> {
    let site = lock.waits_in.first()?;
    let (what, place) = match lock.origin {
        Origin::Initialised | Origin::FirstUse if site.name == lock.name => return None,
        Origin::Initialised => ("  made in ", &lock.short),
        Origin::FirstUse => ("  first in ", &lock.short),
        // It has only this place.
        Origin::Futex => return None,
        Origin::Variable | Origin::Rest => ("  waits in ", &site.short),
    };
    Some(prefixed(what, place, width))
}

fn prefixed(what: &str, name: &str, width: usize) -> String {
    what.to_owned() + &shortened(name, width.saturating_sub(what.len()))
}

/// What else there is to say of a lock.
fn about(lock: &Lock, width: usize) -> String {
    let objects = if lock.objects == 1 { String::new() } else { format!(" x{}", lock.objects) };
    let module = lock.module.as_ref().map(|module| format!(", {module}")).unwrap_or_default();
    shortened(&format!("  {}{objects}{module}", lock.kind), width)
}
