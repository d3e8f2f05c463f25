//! What a profile says, in a sentence.

use std::collections::HashMap;

use crate::analyze::names::wrapper_frames::first_informative;
use crate::command::joined;
use crate::profile::{Cycle, Lock, Origin, Profile};
use crate::text;

/// Waits below this share of the threads' time are not worth a change.
const NEGLIGIBLE: f64 = 0.01;
/// A program is mostly idle if its threads together are busy in at most this share of its run.
const IDLE: f64 = 0.2;
/// Holders sleep with the lock if they run for at most this share of their hold time.
const ASLEEP: f64 = 0.1;
/// A lock limits the program if it is held for more than this share of the time.
pub(crate) const SATURATED: f64 = 0.5;

/// What is known of a run in addition to its profile.
#[derive(Debug)]
pub(crate) struct Circumstances {
    /// Whether the library was put under the program.
    pub is_interposed: bool,
    /// Whether it ran until the user asked it to end.
    pub is_server: bool,
    /// How many processes ended without saying so.
    pub silent: usize,
    /// How many processes were seen and left no statistics.
    pub not_interposed: usize,
}

/// The main finding, in a sentence or two, and the next step: a command.
pub(crate) fn of(profile: &Profile, circumstances: &Circumstances) -> (String, Option<String>) {
    let (own, next) = counted(profile, circumstances);
    // Without the library, only the kernel's view of its locks can be reported.
    let is_said = circumstances.is_interposed || !profile.locks.is_empty();
    let own = if is_said { own } else { String::new() };
    let both = [own, of_kernel(profile)];
    let said: Vec<String> = both.into_iter().filter(|text| !text.is_empty()).collect();
    (said.join(" "), next)
}

/// What the kernel's locks cost.
fn of_kernel(profile: &Profile) -> String {
    if profile.kernel.is_none() {
        return String::new();
    }
    let all: u64 = profile.kernel_locks.iter().map(|lock| lock.wait.total_ns).sum();
    let Some(first) = profile.kernel_locks.first() else {
        return "No wait for a lock of the kernel was seen.".to_owned();
    };
    format!(
        "In the kernel, threads waited {} for locks, {} of it for the {} {}.",
        text::seconds(all as f64 / 1e9),
        text::percent(first.wait.total_ns as f64 / all.max(1) as f64),
        first.kind,
        first.title()
    )
}

/// The finding about the program's locks. A server cannot be compared without a load, so the user
/// has to add one.
fn of_locks(profile: &Profile, circumstances: &Circumstances) -> (String, Option<String>) {
    let Some(first) = profile.locks.first() else {
        return (nothing(circumstances.not_interposed), None);
    };
    if let Some(cycle) = profile.cycles.iter().find(|cycle| cycle.deadlocked) {
        return (deadlock(profile, cycle), None);
    }
    let waited = profile.cpu.lock_spin + profile.cpu.lock_wait;
    let wanted = wanted(profile);
    let share = waited / wanted.max(f64::MIN_POSITIVE);
    if let Some(cycle) = profile.cycles.iter().find(|cycle| cycle.gives_up)
        && share < NEGLIGIBLE
    {
        return (timed_circle(profile, cycle), None);
    }
    if share >= NEGLIGIBLE && wanted < IDLE * profile.wall {
        let text = format!(
            "Locks are not what holds this program back: it was idle. In {} of run its threads ran, waited for a CPU or waited for \
             locks for {} in all, {} of it for locks.",
            seconds(profile.wall),
            seconds(wanted),
            seconds(waited)
        );
        return (text, None);
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
    if first.is_made() {
        return (made(first, profile, share), None);
    }
    let text = format!("{}{}.", evidence(first, profile, share), diagnosis(first, profile));
    let load = if circumstances.is_server { " --ready tcp:PORT --load 'CLIENT ...'" } else { "" };
    (text, Some(format!("manycore compare{load} -- {}", joined(&profile.command))))
}

/// The time of all threads, in seconds, in which they were not idle by choice: they ran, waited for
/// a lock or waited for a CPU. A thread that was woken for a lock and waits for a CPU counts as
/// waiting for the lock.
fn wanted(profile: &Profile) -> f64 {
    let cpu = &profile.cpu;
    let waited = cpu.lock_spin + cpu.lock_wait;
    let ready = cpu.ready.map_or(0.0, |ready| (ready - cpu.lock_wait).max(0.0));
    waited + cpu.kernel + cpu.program + ready
}

/// A finding with its restriction: it says nothing about processes that were not counted.
fn counted(profile: &Profile, circumstances: &Circumstances) -> (String, Option<String>) {
    let (finding, next) = of_locks(profile, circumstances);
    let finding = match (circumstances.not_interposed, circumstances.silent) {
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

/// The finding about a circle of waits, one of which had a deadline. These waits had not ended, and
/// are in no sum.
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

fn nothing(not_interposed: usize) -> String {
    match not_interposed {
        0 => "The program used no pthread lock: other locks cannot help it.".to_owned(),
        n => format!(
            "No pthread lock was used, but {n} of the program's processes could not be seen into."
        ),
    }
}

/// The finding about a lock whose waits the kernel saw. If the library was not preloaded, it may be
/// one of the locks that can be replaced.
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

/// The finding about a lock that the program has made of a mutex and a condition variable.
fn made(lock: &Lock, profile: &Profile, share: f64) -> String {
    let of_all = profile.locks.iter().map(|lock| lock.wait.total_ns).sum::<u64>() as f64;
    let hold = lock.hold.mean_ns.map_or_else(String::new, |ns| {
        format!(" Who has had to wait for it holds it for {} on average", seconds(ns as f64 / 1e9))
    });
    let holder = holder(lock, profile).map_or_else(String::new, |(name, share)| {
        format!(", and {} of the waits ended when it was handed over in {name}", percent(share))
    });
    format!(
        "Threads spend {} of their time waiting for locks, {} of it for {}: {} in {} of run, in {} waits.{hold}{holder}. It is the \
         program's own, so no other lock can be put in its place: do less while it is held, or let threads do without it.",
        percent(share),
        percent(lock.wait.total_ns as f64 / of_all.max(f64::MIN_POSITIVE)),
        called(lock),
        seconds(lock.wait.total_ns as f64 / 1e9),
        seconds(profile.wall),
        lock.contended,
    )
}

/// For a lock that the program implements itself: the function of the holders for which threads
/// waited longest, and its share of the waits.
fn holder(lock: &Lock, profile: &Profile) -> Option<(String, f64)> {
    let place = profile.locks.iter().position(|one| std::ptr::eq(one, lock))?;
    let mut sums: HashMap<&str, u64> = HashMap::new();
    for one in profile.blocking.iter().filter(|one| one.lock == place) {
        let Some(at) = first_informative(one.holder.iter()) else { continue };
        let function = one.holder[at].function.as_deref().unwrap_or(&one.holder[at].module);
        *sums.entry(function).or_default() += one.wait_ns;
    }
    let all: u64 = sums.values().sum();
    let most = sums.into_iter().max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)))?;
    (all > 0).then(|| (most.0.to_owned(), most.1 as f64 / all as f64))
}

/// The evidence: the lock, its share of the time, and the number of acquisitions.
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
        ("mutex+condition", 1) => {
            "the lock that is made of a mutex and the condition variable".to_owned()
        }
        ("mutex+condition", n) => {
            format!("locks that are made of mutexes and {n} condition variables,")
        }
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
    let Some((low, high)) = lock.held_between(profile.wall) else {
        return format!(", while it is held for {hold}");
    };
    let held_text = format!("it is held for {hold} at a time, {} of the run", between(low, high));
    let cpu = &profile.cpu;
    let ran = cpu.kernel + cpu.program + cpu.ready.unwrap_or_default();
    if low >= SATURATED && ran < ASLEEP * low * profile.wall {
        format!(
            ", and {held_text}, by threads that sleep meanwhile: if they wait there for something to do, nothing is lost; if for a disk \
             or for others, that is the limit"
        )
    } else if low >= SATURATED {
        format!(", and {held_text}, so the work done under it is the limit")
    } else if high >= SATURATED {
        format!(
            ", and {held_text}, as {} measured holds say: too few, or too unlike each other, to tell whether the work done under it \
             or its hand-over is the limit",
            lock.hold.count
        )
    } else {
        format!(
            ", while {held_text}, so its hand-over (waking the next thread, giving it a CPU) costs more than the work done under it"
        )
    }
}

/// A share that lies between two.
pub(crate) fn between(low: f64, high: f64) -> String {
    let (low, high) = (percent(low), percent(high));
    if low == high { low } else { format!("{} to {high}", low.trim_end_matches(" %")) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{KernelLock, KernelRun, Scope, Source, Times};

    #[test]
    fn the_sentence_of_the_kernel_names_the_first() {
        let mut profile: Profile =
            serde_json::from_str(include_str!("../profile/example.json")).unwrap();
        assert_eq!(of_kernel(&profile), "");
        profile.kernel = Some(KernelRun {
            source: Source::Bpf,
            scope: Scope::Command,
            seconds: 2.0,
            events: 1100,
            dropped: 0,
            limits: Vec::new(),
        });
        assert_eq!(of_kernel(&profile), "No wait for a lock of the kernel was seen.");
        let lock = |name: &str, kind: &str, total_ns| KernelLock {
            name: name.to_owned(),
            is_named: true,
            kind: kind.to_owned(),
            spins: false,
            spin_ns: 0,
            objects: 1,
            contended: 1000,
            contended_shared: 0,
            wait: Times { count: 1000, total_ns, ..Times::default() },
            stacks: Vec::new(),
        };
        profile.kernel_locks = vec![
            lock("mm->mmap_lock", "rwsem", 1_500_000_000),
            lock("rcu_core", "spinlock", 500_000_000),
        ];
        assert_eq!(
            of_kernel(&profile),
            "In the kernel, threads waited 2.00 s for locks, 75 % of it for the rwsem mm->mmap_lock."
        );
    }
}
