//! What a profile says, in a sentence.

use crate::command::joined;
use crate::profile::{Cycle, Lock, Origin, Profile};

/// Waits below this share of the threads' time are not worth a change.
const NEGLIGIBLE: f64 = 0.01;
/// A lock that is held for more than this share of the time is what limits the program.
pub(crate) const SATURATED: f64 = 0.5;

/// The sentence, and what to do next: a command. A server cannot be compared without a load, which the user has to fill
/// in.
pub fn of(profile: &Profile, is_server: bool) -> (String, Option<String>) {
    let Some(first) = profile.locks.first() else {
        return (nothing(profile), None);
    };
    if let Some(cycle) = profile.cycles.iter().find(|cycle| cycle.deadlocked) {
        return (deadlock(profile, cycle), None);
    }
    let cpu = &profile.cpu;
    let waited = cpu.lock_spin + cpu.lock_wait;
    let share = waited / (waited + cpu.kernel + cpu.program).max(f64::MIN_POSITIVE);
    if let Some(cycle) = profile.cycles.iter().find(|cycle| cycle.gives_up)
        && share < NEGLIGIBLE
    {
        return (timed_circle(profile, cycle), None);
    }
    if share < NEGLIGIBLE {
        let text = format!(
            "Locks are not what holds this program back: its threads waited {} for them, {} of the time that \
             they ran or waited.",
            seconds(waited),
            percent(share)
        );
        return (text, None);
    }
    if first.is_futex() {
        return (own_futex(first, profile, share), None);
    }
    let text = format!("{}{}.", evidence(first, profile, share), diagnosis(first, profile));
    let load = if is_server { " --ready tcp:PORT --load 'CLIENT ...'" } else { "" };
    (text, Some(format!("manycore compare{load} -- {}", joined(&profile.command))))
}

/// The sentence as far as it holds: where processes were not counted, it says nothing of them.
pub fn counted(profile: &Profile, is_server: bool, silent: usize) -> (String, Option<String>) {
    let (finding, next) = of(profile, is_server);
    let finding = match (profile.not_interposed.len(), silent) {
        (0, n) if profile.locks.is_empty() && n > 0 => format!(
            "No pthread lock was counted. Of the program's processes {n} ended without a word (_exit, a signal), and may have \
             been a program then into which the library was not loaded."
        ),
        (n, _) if n > 0 && !profile.locks.is_empty() => {
            let them =
                if n == 1 { "a process was".to_owned() } else { format!("{n} processes were") };
            format!("{finding} That is of what was counted: {them} not.")
        }
        _ => finding,
    };
    (finding, next)
}

fn deadlock(profile: &Profile, cycle: &Cycle) -> String {
    let steps = cycle.orders.iter().map(|step| &profile.orders[*step]);
    let name = |row: usize| &profile.locks[row].short;
    if let [step] = cycle.orders[..] {
        let name = name(profile.orders[step].wanted);
        return format!(
            "The program was in a deadlock: at the end a thread waited for {name}, which it had itself."
        );
    }
    let threads = steps
        .map(|step| format!("one had {} and waited for {}", name(step.held), name(step.wanted)));
    format!(
        "The program was in a deadlock: {} threads waited for each other at the end, {}.",
        cycle.orders.len(),
        threads.collect::<Vec<_>>().join(", ")
    )
}

/// Its waits had not ended, and are in no sum.
fn timed_circle(profile: &Profile, cycle: &Cycle) -> String {
    let names: Vec<&str> = cycle
        .orders
        .iter()
        .map(|step| profile.locks[profile.orders[*step].wanted].short.as_str())
        .collect();
    format!(
        "At the end threads waited for each other in a circle ({}), until a time was to be over that one of them had set: how \
         long is not counted of a wait that has not ended.",
        names.join(", ")
    )
}

fn nothing(profile: &Profile) -> String {
    match profile.not_interposed.len() {
        0 => "The program used no pthread lock: other locks cannot help it.".to_owned(),
        n => format!(
            "No pthread lock was used, but {n} of the program's processes could not be seen into."
        ),
    }
}

/// Of a lock that the kernel saw the program wait for. Where the library was not put under the program, it may be one of those that
/// can be replaced.
fn own_futex(lock: &Lock, profile: &Profile, share: f64) -> String {
    let of_all = profile.locks.iter().map(|lock| lock.wait.total_ns).sum::<u64>() as f64;
    let whose = if profile.lock == "glibc" {
        "The library was not put under the program: profile it without --lock glibc (or --pid) to see whether another lock \
         can take its place."
    } else {
        "It is the program's own, so no other lock can be put in its place."
    };
    format!(
        "Threads spend {} of their time waiting for locks, {} of it for {}: {} in {} of run, in {} sleeps. {whose}",
        percent(share),
        percent(lock.wait.total_ns as f64 / of_all.max(f64::MIN_POSITIVE)),
        called(lock),
        seconds(lock.wait.total_ns as f64 / 1e9),
        seconds(profile.wall),
        lock.contended,
    )
}

/// Which lock, how much of the time, how many acquisitions.
fn evidence(lock: &Lock, profile: &Profile, share: f64) -> String {
    let waited = lock.wait.total_ns as f64 / 1e9;
    let of_all = profile.locks.iter().map(|lock| lock.wait.total_ns).sum::<u64>() as f64 / 1e9;
    format!(
        "Threads spend {} of their time waiting for locks, {} of it for {}: {} in {} of run; {} of its {} \
         acquisitions had to wait, {} on average",
        percent(share),
        percent(waited / of_all.max(f64::MIN_POSITIVE)),
        called(lock),
        seconds(waited),
        seconds(profile.wall),
        percent(lock.contended_share),
        lock.acquired,
        lock.wait.mean_ns.map_or_else(String::new, |ns| seconds(ns as f64 / 1e9)),
    )
}

/// The lock, and what its name means.
fn called(lock: &Lock) -> String {
    let Lock { name, kind, objects, .. } = lock;
    let one = match (kind.as_str(), objects) {
        ("recursive" | "errorcheck" | "adaptive", 1) => format!("the {kind} mutex"),
        ("recursive" | "errorcheck" | "adaptive", n) => format!("{n} {kind} mutexes"),
        ("mutex", n) if *n != 1 => format!("{n} mutexes"),
        (_, 1) => format!("the {kind}"),
        (_, n) => format!("{n} {kind}s"),
    };
    match (lock.origin, lock.waits_in.first()) {
        (Origin::Variable, _) => format!("{one} {name}"),
        (Origin::Futex, _) => format!("{one} that threads wait for in {name}"),
        (Origin::Rest, _) => name.clone(),
        (origin @ (Origin::Initialised | Origin::FirstUse), site) => {
            let how = if origin == Origin::Initialised { "initialised" } else { "first used" };
            match site {
                Some(site) if site.name != *name => {
                    format!("{one} that threads wait for in {}, {how} in {}", site.name, lock.short)
                }
                _ => format!("{one} {how} in {name}"),
            }
        }
    }
}

/// Whether the lock is long held, or costs by its hand-over.
fn diagnosis(lock: &Lock, profile: &Profile) -> String {
    let Some(hold) = lock.hold.mean_ns else { return String::new() };
    let hold = seconds(hold as f64 / 1e9);
    let Some(held) = lock.held_share(profile.wall) else {
        return format!(", while it is held for {hold}");
    };
    let held_text = format!("it is held for {hold} at a time, {} of the run", percent(held));
    if held >= SATURATED {
        format!(", and {held_text}, so the work done under it is the limit")
    } else {
        format!(
            ", while {held_text}, so its hand-over (waking the next thread, giving it a CPU) costs more than the work done under it"
        )
    }
}

/// A share, in percent.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// A duration.
pub(crate) fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "us"),
        s => (s * 1e9, "ns"),
    };
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}
