//! A profile for a terminal, at most 100 columns wide.

use std::fmt::Write;
use std::io;
use std::os::fd::AsFd;

use manycore_measure::{Cell, Column, Host, Table, Tone, duration, quantity, significant};
use manycore_profile::command::joined;
use manycore_profile::harmless;
use manycore_profile::profile::{
    CacheMisses, Condition, End, Exit, Held, Lock, Origin, OtherNodes, Outsider, Process, Profile,
    Sampling, Times,
};

use rustix::termios::tcgetwinsize;

use crate::calls::account;
use crate::profile::{Sort, advice, kernel_table, samples};

/// Width of a whole table where nothing else is known.
const WIDTH: usize = 100;
/// What the other columns take of it.
const NUMBERS: usize = 73;
/// Processes that have a table of their own; the others have a row.
const PROCESSES: usize = 8;
/// Rows of a process' own table.
const ROWS_OF_PROCESS: usize = 3;

/// How a profile is shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Rows of a table, at most.
    pub top: usize,
    /// What comes first.
    pub sort: Sort,
    /// Makes a table for where it is shown.
    pub table: fn(Vec<Column>) -> Table,
    /// Room for a name.
    name_width: usize,
}

impl View {
    /// Room for a name in a table whose other columns take so much.
    pub fn name_width(&self, numbers: usize) -> usize {
        (self.name_width + NUMBERS).saturating_sub(numbers)
    }

    /// For a file or a pipe.
    pub fn plain(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::plain, name_width: WIDTH - NUMBERS }
    }

    /// For the standard error, which may be a terminal of any width.
    pub fn for_stderr(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::for_stderr, name_width: name_width(io::stderr()) }
    }

    /// For the standard output, likewise.
    pub fn for_stdout(top: usize, sort: Sort) -> Self {
        Self { top, sort, table: Table::new, name_width: name_width(io::stdout()) }
    }
}

/// Room for a name, where this may be a terminal.
fn name_width(terminal: impl AsFd) -> usize {
    let width = tcgetwinsize(terminal).map_or(WIDTH, |size| size.ws_col.into());
    width.saturating_sub(NUMBERS).clamp(20, 80)
}

/// The whole profile.
pub fn whole(profile: &Profile, view: View) -> String {
    let mut text = heading(profile);
    text += &of_the_program(profile, view);
    if profile.processes.len() > 1 {
        text += &processes(&profile.processes, view);
    }
    text += &outsiders(&profile.not_interposed);
    if let Some(calls) = &profile.system_calls {
        text += &format!("System calls\n{}\n\n", account::text(calls));
    }
    text += &kernel_table::table(profile, view);
    text += &time(profile);
    text += &advice::of(profile);
    let _ = writeln!(text, "{}", harmless(&profile.finding));
    if let Some(next) = &profile.next {
        let _ = writeln!(text, "Next: {}", harmless(next));
    }
    text
}

/// Locks and condition variables, the sum over all processes.
pub(super) fn of_the_program(profile: &Profile, view: View) -> String {
    let several = profile.processes.len() > 1;
    let title = if several { "Locks of all processes" } else { "Locks" };
    locks(&profile.locks, view, title) + &conditions(&profile.conditions, view)
}

fn heading(profile: &Profile) -> String {
    let command = harmless(&joined(&profile.command));
    let end = match profile.exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
    };
    let how = if profile.lock == "futex" { " (does what glibc's mutex does)" } else { "" };
    let host = profile.host.as_ref().map_or_else(|| "host unknown".to_owned(), Host::to_string);
    format!(
        "{command}\n{host}\nlock {}{how}; ran {}, {end}\n\n",
        profile.lock,
        seconds(profile.wall)
    )
}

fn locks(all: &[Lock], view: View, title: &str) -> String {
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
            title_of(lock, view.name_width).into(),
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
        let about = Cell::new(about(lock, view.name_width), Tone::Faint);
        table.row([about, blank(), blank(), blank(), "hold".into(), total, mean, p99, max]);
        if let Some(place) = other_place(lock, view.name_width) {
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

fn conditions(all: &[Condition], view: View) -> String {
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
            shortened(&name, view.name_width).into(),
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

fn processes(all: &[Process], view: View) -> String {
    let mut sorted: Vec<&Process> = all.iter().collect();
    sorted.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
    let mut text = String::new();
    for process in sorted.iter().take(PROCESSES) {
        let title = match process.pid {
            // Many, as one.
            0 => format!("{}: locks", process.program),
            pid => format!(
                "Process {pid} {}, {}, {} threads: locks",
                process.program,
                end(process.end),
                process.threads
            ),
        };
        text += &locks(&process.locks, View { top: view.top.min(ROWS_OF_PROCESS), ..view }, &title);
    }
    if all.len() > PROCESSES {
        let others = &sorted[PROCESSES..];
        let _ = writeln!(
            text,
            "{} more processes, which waited {} for locks (--json has them)\n",
            others.len(),
            seconds(others.iter().map(|process| waited(process)).sum())
        );
    }
    text
}

fn waited(process: &Process) -> f64 {
    process.lock_spin + process.lock_wait
}

fn end(end: End) -> &'static str {
    match end {
        End::Exited => "exited",
        End::CutShort => "ended without exit handlers",
        End::Replaced => "became another program",
        End::Running => "still running",
    }
}

/// Processes that cannot be seen into, by program and reason.
pub fn outsiders(all: &[Outsider]) -> String {
    let mut grouped: Vec<(&Outsider, usize)> = Vec::new();
    for outsider in all {
        let same = |(other, _): &&mut (&Outsider, usize)| {
            (&other.program, &other.why) == (&outsider.program, &outsider.why)
        };
        match grouped.iter_mut().find(same) {
            Some((_, count)) => *count += 1,
            None => grouped.push((outsider, 1)),
        }
    }
    let mut text = String::new();
    for (outsider, count) in grouped {
        let Outsider { pid, program, why, .. } = outsider;
        let _ = match count {
            1 => writeln!(text, "Not seen into: process {pid} {program}: {why}"),
            n => writeln!(text, "Not seen into: {n} processes {program}: {why}"),
        };
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn time(profile: &Profile) -> String {
    let cpu = &profile.cpu;
    let all = cpu.program + cpu.kernel + cpu.lock_spin;
    let part =
        |part: f64| format!("{} ({})", seconds(part), percent(part / all.max(f64::MIN_POSITIVE)));
    let mut text = format!(
        "CPU time {}: program {}, kernel {}, waits for locks {}\n\
         Off the CPU in waits for locks: {}\n",
        seconds(all),
        part(cpu.program),
        part(cpu.kernel),
        part(cpu.lock_spin),
        seconds(cpu.lock_wait)
    );
    text += &profile.cpu_samples.as_ref().map(samples::text).unwrap_or_default();
    if let Some(misses) = &profile.cache_misses {
        text += &cache_misses(misses, profile.wall);
    }
    if profile.sampling.hold_period > 0 {
        let _ = writeln!(
            text,
            "Counts are exact, waits all timed; sampled: 1 hold in {}, CPU time and place of 1 wait in {}.",
            profile.sampling.hold_period, profile.sampling.spin_period
        );
    }
    text += &left_out(profile.sampling);
    text.push('\n');
    text
}

/// What there were too many of to keep all: a line, or nothing.
fn left_out(sampling: Sampling) -> String {
    let Sampling { cut, dropped, blocked_dropped, orders_dropped, .. } = sampling;
    let parts = [
        (dropped, "sampled waits are without their place"),
        (cut, "stacks have one call only"),
        (blocked_dropped, "sampled waits are without who had the lock"),
        (orders_dropped, "times two locks were taken in an order that is not kept"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
    if parts.is_empty() { String::new() } else { format!("Too many: {}.\n", parts.join(", ")) }
}

/// In two lines: how many, or why nobody knows.
fn cache_misses(misses: &CacheMisses, wall: f64) -> String {
    let CacheMisses { reads, counted, refused, other_nodes } = misses;
    let mut text =
        counted_line("Reads that no cache had", *reads, *counted, refused.as_deref(), wall);
    if let Some(others @ OtherNodes { lines, counted, refused, .. }) = other_nodes {
        // Where there is nothing to read, the event's name would only make the line long.
        let event = others.event.as_deref().filter(|_| refused.is_none());
        text +=
            &counted_line(&out_of_other_nodes(event), *lines, *counted, refused.as_deref(), wall);
    }
    text
}

/// What a processor's event is a count of: makers' differ.
fn out_of_other_nodes(event: Option<&str>) -> String {
    match event {
        Some(event) if event.ends_with("HITM") => {
            format!("Loads of lines that another node had modified ({event})")
        }
        Some(event) => format!("Demand fills from another node's cache ({event})"),
        None => "Lines out of another node's cache".to_owned(),
    }
}

fn counted_line(
    what: &str,
    count: Option<u64>,
    counted: Option<f64>,
    refused: Option<&str>,
    wall: f64,
) -> String {
    match (count, refused) {
        (Some(count), _) => {
            let a_second =
                quantity(count as f64 / wall.max(f64::MIN_POSITIVE), "op/s").replace("op/s", "/s");
            let share = match counted {
                Some(share) if share < 0.995 => {
                    format!("; worked out from {} of the time", percent(share))
                }
                _ => String::new(),
            };
            format!("{what}: {count}, {a_second}{share}\n")
        }
        (None, Some(why)) => format!("{what}: {why}\n"),
        (None, None) => String::new(),
    }
}

pub(super) fn times(times: &Times, total: String) -> [Cell; 4] {
    let shown = |value: Option<u64>| value.map(ns).unwrap_or_default();
    let total = if times.count == 0 { String::new() } else { total };
    [total, shown(times.mean_ns), shown(times.p99_ns), shown(times.max_ns)].map(Cell::from)
}

/// How long it was held in all: from the one to the other, nineteen times in twenty; or about, where these are the same to two digits.
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

/// The other place that tells what a lock is for, if one is known.
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

/// A name that fits: name spaces go first, then the middle.
pub fn shortened(name: &str, width: usize) -> String {
    let mut name = name;
    while name.chars().count() > width
        && let Some((_, rest)) = name.split_once("::")
    {
        name = rest;
    }
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width {
        return name.to_owned();
    }
    let (head, tail) = (width / 2 - 1, width - width / 2 - 1);
    chars[..head].iter().chain(&['.', '.']).chain(&chars[chars.len() - tail..]).collect()
}

pub(super) fn rest(all: usize, top: usize, what: &str) -> String {
    match all.saturating_sub(top) {
        0 => String::new(),
        more => format!("{more} more {what} (--top, --json)\n"),
    }
}

pub(super) fn ns(ns: u64) -> String {
    duration(ns as f64)
}

/// A time, in the unit that suits.
pub fn seconds(seconds: f64) -> String {
    duration(seconds * 1e9).trim_end().to_owned()
}

/// A share, of which small ones are not zero.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        small if small < 0.095 => "<0.1 %".to_owned(),
        some if some < 9.95 => format!("{some:.1} %"),
        much => format!("{much:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of two processes, three locks and a condition variable.
    fn example() -> Profile {
        serde_json::from_str(include_str!("example.json")).unwrap()
    }

    fn shown(profile: &Profile, sort: Sort) -> String {
        whole(profile, View::plain(10, sort))
    }

    #[test]
    fn misses_are_counted_worked_out_or_explained() {
        let shown = |reads, counted, refused: Option<&str>| {
            let refused = refused.map(str::to_owned);
            cache_misses(&CacheMisses { reads, counted, refused, other_nodes: None }, 2.0)
        };
        let all = shown(Some(5_000_000), Some(1.0), None);
        assert_eq!(all, "Reads that no cache had: 5000000, 2.50 M/s\n");
        assert!(shown(Some(8), Some(0.5), None).ends_with("; worked out from 50 % of the time\n"));
        let why = shown(None, None, Some("not supported"));
        assert_eq!(why, "Reads that no cache had: not supported\n");
        let event = Some("FAR".to_owned());
        let other_nodes = OtherNodes { event, lines: Some(8), counted: Some(1.0), refused: None };
        let other_nodes = Some(other_nodes);
        let both = CacheMisses { reads: Some(9), counted: Some(1.0), refused: None, other_nodes };
        let fills = "\nDemand fills from another node's cache (FAR): 8, 4.00 /s\n";
        assert!(cache_misses(&both, 2.0).ends_with(fills));
        assert!(out_of_other_nodes(Some("REMOTE_HITM")).contains("modified (REMOTE_HITM)"));
    }

    #[test]
    fn a_command_that_would_drive_the_terminal_is_text() {
        let mut profile = example();
        let wild = "\u{1b}]0;x\u{7}\u{9b}2J".to_owned();
        profile.command.push(wild.clone());
        profile.finding.push_str(&wild);
        profile.next = Some(wild);
        let text = shown(&profile, Sort::Wait);
        assert!(text.contains("Next: \u{fffd}]0;x"), "{text}");
        let commands = text.chars().filter(|c| c.is_control() && *c != '\n');
        assert_eq!(commands.count(), 0, "{text:?}");
    }

    #[test]
    fn places_that_were_not_kept_are_counted() {
        let mut profile = example();
        profile.sampling.dropped = 12;
        let text = shown(&profile, Sort::Wait);
        assert!(text.contains("Too many: 12 sampled waits are without their place.\n"), "{text}");
    }

    #[test]
    fn a_profile_looks_like_this() {
        let text = shown(&example(), Sort::Wait);
        insta::assert_snapshot!(text);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn rows_come_in_the_order_asked_for() {
        let first = |sort| {
            let text = shown(&example(), sort);
            text.lines().nth(7).unwrap_or_default().split(' ').next().unwrap_or_default().to_owned()
        };
        assert_eq!(first(Sort::Wait), "cache_lock");
        assert_eq!(first(Sort::Acquired), "cache_lock");
        let mut profile = example();
        profile.locks[2].contended = 1_000_000;
        profile.locks[1].hold.total_ns = u64::MAX / 2;
        let second = |sort| shown(&profile, sort).lines().nth(7).unwrap_or_default().to_owned();
        assert!(
            second(Sort::Contended).starts_with("server+0x4060"),
            "{}",
            second(Sort::Contended)
        );
        assert!(second(Sort::Hold).starts_with("in CacheDB::accept+"), "{}", second(Sort::Hold));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let text = whole(&example(), View::plain(1, Sort::Wait));
        assert!(text.contains("2 more locks (--top, --json)"), "{text}");
    }

    #[test]
    fn long_names_lose_what_tells_least() {
        assert_eq!(shortened("main+0x12", 28), "main+0x12");
        let name = "kyotocabinet::CacheDB::accept_visitor+0x5c";
        assert_eq!(shortened(name, 28), "CacheDB::accept_visitor+0x5c");
        let long = shortened("a_function_whose_name_never_seems_to_end+0x5c", 28);
        assert_eq!(long, "a_function_wh..s_to_end+0x5c");
        assert_eq!(long.len(), 28);
    }

    #[test]
    fn small_shares_are_not_zero() {
        let shown = [0.0, 0.0001, 0.024, 0.5, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "<0.1 %", "2.4 %", "50 %", "100 %"]);
    }
}
