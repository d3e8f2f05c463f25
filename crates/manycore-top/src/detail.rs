//! The page of a lock: its identity, its counts, the places where threads wait for it, its owner
//! meanwhile, and the threads that use it.

use manycore_kernel_trace::KernelLock;
use manycore_measure::duration;
use manycore_profile::analyze::live::{LiveLock, LockId, Picture};
use manycore_profile::profile::{Frame, Lock, Origin, Times};
use manycore_profile::safe;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use crate::rows::{RowId, Span};
use crate::state::State;
use manycore_profile::{percent, seconds};

/// Calls that are shown of a stack.
const CALLS_MAX: usize = 12;
/// Stacks, pairs and threads that are shown.
const LISTED_MAX: usize = 20;

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// The page.
pub fn lines(state: &State, id: &RowId) -> Vec<Line<'static>> {
    let lines = match id {
        RowId::Program(id) => of_program(state, *id),
        RowId::Kernel(name, kind) => of_kernel(state, name, kind),
    };
    lines.unwrap_or_else(|| vec![Line::from("this lock is no longer known")])
}

fn of_program(state: &State, id: LockId) -> Option<Vec<Line<'static>>> {
    let pictures = state.pictures.as_ref()?;
    let total = find(&pictures.total, id)?.1;
    let interval = pictures.interval.as_ref();
    let in_interval = interval.and_then(|picture| find(picture, id));
    let mut lines = about(&total.lock);
    lines.push(Line::from(""));
    if let Some(picture) = interval {
        let lock = in_interval.map(|(_, one)| &one.lock);
        lines.push(figures(&format!("last {}", seconds(picture.seconds)), lock, picture.seconds));
    }
    let all = format!("all {}", seconds(pictures.total.seconds));
    lines.push(figures(&all, Some(&total.lock), pictures.total.seconds));
    let (picture, found) = match (state.shown_span(), interval) {
        (Span::Interval, Some(picture)) => (picture, in_interval),
        _ => (&pictures.total, find(&pictures.total, id)),
    };
    lines.extend(waiting(total, &pictures.total));
    match found {
        Some((row, _)) => {
            lines.extend(stacks(picture, row));
            lines.extend(holders(picture, row));
            lines.extend(threads(picture, row));
        }
        None => lines.extend(section("It was not used in the last interval: t shows all")),
    }
    Some(lines)
}

fn find(picture: &Picture, id: LockId) -> Option<(usize, &LiveLock)> {
    picture.locks.iter().enumerate().find(|(_, one)| one.id == id)
}

/// What it is called, and where it is from.
fn about(lock: &Lock) -> Vec<Line<'static>> {
    let Lock { name, kind, objects, module, .. } = lock;
    let objects = if *objects == 1 { String::new() } else { format!(", {objects} objects") };
    let module = module.as_ref().map(|module| format!(", {module}")).unwrap_or_default();
    let from = match lock.origin {
        Origin::Variable | Origin::Rest => String::new(),
        Origin::Initialised => format!("made in {name}"),
        Origin::FirstUse => format!("first used in {name}"),
        Origin::Futex => format!("waited for in {name}"),
    };
    let mut lines =
        vec![Line::styled(lock.title(), BOLD), Line::from(format!("{kind}{objects}{module}"))];
    if !from.is_empty() {
        lines.push(Line::from(from));
    }
    lines
}

/// What it did in a span, in a line.
fn figures(span: &str, lock: Option<&Lock>, length: f64) -> Line<'static> {
    let Some(lock) = lock else { return Line::from(format!("{span}: not used")) };
    let held = match (lock.held_share(length), lock.hold.mean_ns) {
        (Some(share), Some(mean)) => {
            format!("; held {} of the time, {} each", percent(share), seconds(mean as f64 / 1e9))
        }
        (None, Some(mean)) => format!("; held {} each", seconds(mean as f64 / 1e9)),
        _ => String::new(),
    };
    Line::from(format!(
        "{span}: taken {}, {} had to wait; {}{held}; moved {}",
        lock.acquired,
        percent(lock.contended_share),
        waits(&lock.wait, lock.contended),
        percent(lock.moved_share()),
    ))
}

fn waits(wait: &Times, contended: u64) -> String {
    let each = |what: &str, ns: Option<u64>| {
        ns.map_or_else(String::new, |ns| format!(", {what} {}", seconds(ns as f64 / 1e9)))
    };
    format!(
        "{contended} waits, {}{}{}{}",
        seconds(wait.total_ns as f64 / 1e9),
        each("mean", wait.mean_ns),
        each("p99", wait.p99_ns),
        each("worst", wait.max_ns),
    )
}

fn section(title: &str) -> Vec<Line<'static>> {
    vec![Line::from(""), Line::styled(title.to_owned(), BOLD)]
}

/// A list with its title, cut to its first entries; nothing if it is empty.
fn list<T>(title: &str, all: &[T], line: impl Fn(&T) -> Vec<String>) -> Vec<Line<'static>> {
    if all.is_empty() {
        return Vec::new();
    }
    let mut lines = section(title);
    lines.extend(all.iter().take(LISTED_MAX).flat_map(line).map(Line::from));
    if all.len() > LISTED_MAX {
        lines.push(Line::from(format!("  and {} more", all.len() - LISTED_MAX)));
    }
    lines
}

/// The threads that wait now.
fn waiting(one: &LiveLock, total: &Picture) -> Vec<Line<'static>> {
    let name = |pid: u32, tid: u32| {
        let thread = total.threads.iter().find(|thread| (thread.pid, thread.tid) == (pid, tid));
        thread.map_or_else(String::new, |thread| safe(&thread.name))
    };
    list("Threads that wait for it now", &one.waiting, |waiter| {
        let lasted = duration(waiter.ns as f64);
        vec![format!("  {lasted:>8}  {} ({})", name(waiter.pid, waiter.tid), waiter.tid)]
    })
}

/// Where threads wait.
fn stacks(picture: &Picture, row: usize) -> Vec<Line<'static>> {
    let mut found: Vec<_> = picture.stacks.iter().filter(|stack| stack.lock == row).collect();
    found.sort_by_key(|stack| std::cmp::Reverse(stack.wait_ns));
    let all: u64 = found.iter().map(|stack| stack.wait_ns).sum();
    list("Where threads wait for it, innermost call first (from samples)", &found, |stack| {
        let share = percent(stack.wait_ns as f64 / all.max(1) as f64);
        let mut calls = calls(&stack.frames);
        if calls.is_empty() {
            calls.push("(elsewhere)".to_owned());
        }
        beside(&format!("{share:>7}"), &calls)
    })
}

/// The threads that have it while others wait.
fn holders(picture: &Picture, row: usize) -> Vec<Line<'static>> {
    let found: Vec<_> = picture.blocking.iter().filter(|one| one.lock == row).collect();
    let all: u64 = found.iter().map(|one| one.wait_ns).sum();
    list("Where it was taken by whom they wait for (from samples)", &found, |one| {
        let share = percent(one.wait_ns as f64 / all.max(1) as f64);
        let place = |frames: &[Frame]| frames.first().map_or("?".to_owned(), call);
        vec![format!("  {share:>7}  {} keeps {} waiting", place(&one.holder), place(&one.waiter))]
    })
}

/// Which threads waited for it.
fn threads(picture: &Picture, row: usize) -> Vec<Line<'static>> {
    let found = picture.threads.iter().filter_map(|thread| {
        Some((thread, thread.waits.iter().find(|waited| waited.lock == row)?))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, waited)| std::cmp::Reverse(waited.wait_ns));
    list("Threads that waited for it", &found, |(thread, waited)| {
        let time = duration(waited.wait_ns as f64);
        let (waits, name) = (waited.contended, safe(&thread.name));
        vec![format!("  {time:>8}  {waits:>8} waits  {name} ({})", thread.tid)]
    })
}

fn of_kernel(state: &State, name: &str, kind: &str) -> Option<Vec<Line<'static>>> {
    let kernel = state.kernel.as_ref()?;
    let is_it = |lock: &&KernelLock| lock.name == name && lock.kind == kind;
    let total = kernel.total.iter().find(is_it)?;
    let interval = kernel.interval.iter().find(is_it);
    let spins = if total.spins { ", who waits spins" } else { "" };
    let mut lines = vec![
        Line::styled(total.title(), BOLD),
        Line::from(format!("{kind} of the kernel, {} objects{spins}", total.objects)),
        Line::from(""),
    ];
    let of = |span: &str, lock: &KernelLock| {
        let spun = percent(lock.spin_ns as f64 / lock.wait.total_ns.max(1) as f64);
        Line::from(format!("{span}: {}; spun {spun}", waits(&lock.wait, lock.contended)))
    };
    lines.push(
        interval.map_or(Line::from("last interval: no wait"), |one| of("last interval", one)),
    );
    lines.push(of("all", total));
    let shown = if state.shown_span() == Span::Interval { interval } else { Some(total) };
    if let Some(lock) = shown {
        let all: u64 = lock.stacks.iter().map(|stack| stack.wait_ns).sum();
        lines.extend(list("Who waits for it, innermost call first", &lock.stacks, |stack| {
            let share = percent(stack.wait_ns as f64 / all.max(1) as f64);
            let cgroup = stack.cgroup.as_ref().map(|cgroup| format!(" in {}", safe(cgroup)));
            let mut lines =
                vec![format!("task {}{}", safe(&stack.task), cgroup.unwrap_or_default())];
            lines.extend(calls(&stack.frames));
            if !stack.owner_frames.is_empty() {
                lines.push("while its owner was in".to_owned());
                lines
                    .extend(calls(&stack.owner_frames).into_iter().map(|call| format!("  {call}")));
            }
            beside(&format!("{share:>7}"), &lines)
        }));
    }
    Some(lines)
}

/// The calls of a stack, a line each.
fn calls(frames: &[Frame]) -> Vec<String> {
    let mut lines: Vec<String> = frames.iter().take(CALLS_MAX).map(call).collect();
    if frames.len() > CALLS_MAX {
        lines.push(format!("and {} calls further out", frames.len() - CALLS_MAX));
    }
    lines
}

fn call(frame: &Frame) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => {
            format!("{} {}:{line}", frame.label(), safe(file.rsplit('/').next().unwrap_or(file)))
        }
        _ => frame.label(),
    }
}

/// Lines; the first one follows the heading on the same line.
fn beside(said: &str, lines: &[String]) -> Vec<String> {
    let blank = " ".repeat(said.chars().count());
    let before = |at: usize| if at == 0 { said } else { &blank };
    lines.iter().enumerate().map(|(at, line)| format!("  {}  {line}", before(at))).collect()
}
