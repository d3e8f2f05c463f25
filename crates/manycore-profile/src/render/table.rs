//! A profile for a terminal, at most 100 columns wide.

use std::fmt::Write;

use manycore_measure::Host;
use signal_hook::low_level::signal_name;

use super::lock_table::{conditions, locks};
use super::view::View;
use super::{advice, cpu_time, kernel_table, system_calls};
use crate::command::joined;
use crate::harmless;
use crate::profile::{End, Exit, Outsider, Process, Profile};
use crate::text::seconds;

/// The number of processes that have a table of their own; the others have a row.
const PROCESSES: usize = 8;
/// Rows of a process' own table.
const ROWS_OF_PROCESS: usize = 3;

/// The whole profile.
pub fn whole(profile: &Profile, view: View) -> String {
    let mut text = heading(profile);
    text += &of_the_program(profile, view);
    if profile.processes.len() > 1 {
        text += &processes(&profile.processes, view);
    }
    text += &outsiders(&profile.not_interposed);
    if let Some(calls) = &profile.system_calls {
        text += &format!("System calls\n{}\n\n", system_calls::text(calls));
    }
    text += &kernel_table::table(profile, view);
    text += &cpu_time::lines(profile);
    text += &advice::of(profile);
    let _ = writeln!(text, "{}", harmless(&profile.finding));
    if let Some(next) = &profile.next {
        let _ = writeln!(text, "Next: {}", harmless(next));
    }
    text
}

/// The table of a profile that has only the kernel's side.
pub fn kernel_alone(profile: &Profile, view: View) -> String {
    let Some(run) = &profile.kernel else { return String::new() };
    let host = profile.host.as_ref().map_or_else(|| "host unknown".to_owned(), ToString::to_string);
    let (whose, time) = (kernel_table::whose(run), seconds(profile.wall));
    let own = of_the_program(profile, view);
    let all = kernel_table::table(profile, view);
    format!("Waits of {whose}, {time} long\n{host}\n\n{own}{all}{}\n", profile.finding)
}

/// Locks and condition variables, the sum over all processes.
fn of_the_program(profile: &Profile, view: View) -> String {
    let several = profile.processes.len() > 1;
    let title = if several { "Locks of all processes" } else { "Locks" };
    locks(&profile.locks, view, title) + &conditions(&profile.conditions, view)
}

fn heading(profile: &Profile) -> String {
    let command = harmless(&joined(&profile.command));
    let end = match profile.exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => match signal_name(signal) {
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
        text += &locks(&process.locks, view.with_rows(ROWS_OF_PROCESS), &title);
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

/// Processes without statistics, by program and reason.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Sort;

    /// A profile of two processes, three locks and a condition variable.
    fn example() -> Profile {
        serde_json::from_str(include_str!("../profile/example.json")).unwrap()
    }

    fn shown(profile: &Profile, sort: Sort) -> String {
        whole(profile, View::plain(10, sort))
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
}
