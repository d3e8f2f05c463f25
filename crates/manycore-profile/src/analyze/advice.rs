//! Advice, and the figures that support it. Causes that these figures cannot show are left out.

use std::collections::BTreeMap;

use crate::analyze::finding::{SATURATED, between, percent, seconds};
use crate::analyze::run_analysis::neighbours::Neighbours;
use crate::profile::{Cause, Cycle, Lock, Note, Order, Part, Profile};

/// The most locks for which advice is given: those with the longest waits.
const LOCKS_MAX: usize = 10;
/// A lock gets advice if threads spend this share of their time waiting for it.
const WORTH: f64 = 0.01;
/// A lock that is held for short times is hot if this share of the attempts had to wait.
const HOT: f64 = 0.05;
/// Spinning gets advice from this share of the CPU time on.
const SPINNING: f64 = 0.1;
/// A spinning thread takes the CPU from others only if the threads want at least this share of the
/// CPUs' time.
const BUSY: f64 = 0.2;
/// A lock counts as mostly read if this share of its acquisitions is for reading.
const MOSTLY_READ: f64 = 0.9;
/// A lock counts as heavily updated if this share of its acquisitions is for writing.
const MOSTLY_UPDATED: f64 = 0.8;
/// This many notes of one cause, at most.
const OF_A_CAUSE_MAX: usize = 5;

/// All advice. Dangers of a permanent stop come first, then the rest by the time that could be
/// saved.
pub(crate) fn of(
    profile: &Profile,
    neighbours: &BTreeMap<(usize, usize), Neighbours>,
) -> Vec<Note> {
    let mut notes: Vec<Note> =
        profile.cycles.iter().take(OF_A_CAUSE_MAX).map(|cycle| of_circle(profile, cycle)).collect();
    let cpu = &profile.cpu;
    let all = cpu.kernel + cpu.program + cpu.lock_spin + cpu.lock_wait;
    for (place, lock) in profile.locks.iter().enumerate().take(LOCKS_MAX) {
        if lock.wait.total_ns as f64 / 1e9 >= WORTH * all {
            notes.extend(of_sharing(lock, place));
            notes.extend(of_holds(lock, place, profile.wall));
        }
    }
    notes.extend(of_spinning(profile));
    notes.extend(of_own_spinning(profile));
    let close = neighbours.iter().take(OF_A_CAUSE_MAX);
    notes.extend(close.map(|(rows, neighbours)| of_neighbours(profile, *rows, neighbours)));
    notes
}

fn note(cause: Cause, lock: Option<usize>, advice: String, evidence: String) -> Note {
    Note { cause, lock, advice, evidence }
}

/// Advice from the mixture of reads and updates of a reader-writer lock.
fn of_sharing(lock: &Lock, place: usize) -> Option<Note> {
    if lock.kind != "rwlock" || lock.acquired == 0 {
        return None;
    }
    let name = &lock.short;
    let reads = lock.shared as f64 / lock.acquired as f64;
    let evidence = format!(
        "{} of {} acquisitions were for reading, {} for writing; threads waited {}",
        lock.shared,
        lock.acquired,
        lock.exclusive,
        seconds(lock.wait.total_ns as f64 / 1e9)
    );
    let (cause, advice) = if lock.shared == 0 {
        let advice = format!(
            "{name} is a reader-writer lock that was never taken for reading: let those that only read take it so, \
             or make it a mutex, which costs less"
        );
        (Cause::ReadersExclude, advice)
    } else if reads >= MOSTLY_READ {
        let advice = format!(
            "what {name} protects is read and rarely changed: RCU or MV-RLU let readers go on without a lock"
        );
        (Cause::ReadMostly, advice)
    } else if reads <= 1.0 - MOSTLY_UPDATED {
        let advice = format!(
            "what {name} protects is changed often and rarely read: LDU or OpLog let changes be logged without a lock"
        );
        (Cause::UpdateHeavy, advice)
    } else {
        return None;
    };
    Some(note(cause, Some(place), advice, evidence))
}

/// Advice if a lock is held for long, or handed over too often. If the samples do not tell which of
/// the two, there is no advice.
fn of_holds(lock: &Lock, place: usize, wall: f64) -> Option<Note> {
    let mean = lock.hold.mean_ns?;
    let (low, high) = lock.held_between(wall)?;
    let name = &lock.short;
    let evidence = format!(
        "held for {} at a time, {} of the run; {} of {} acquisitions had to wait",
        seconds(mean as f64 / 1e9),
        between(low, high),
        percent(lock.contended_share),
        lock.acquired
    );
    if low >= SATURATED {
        let advice = format!(
            "do less while {name} is held, or divide what it protects: another lock helps little"
        );
        Some(note(Cause::LongHold, Some(place), advice, evidence))
    } else if high < SATURATED && lock.contended_share >= HOT {
        let advice = format!(
            "take {name} less often, or divide what it protects; a lock that hands over faster helps: `manycore compare`"
        );
        Some(note(Cause::HotLock, Some(place), advice, evidence))
    } else {
        None
    }
}

/// Advice about spinning in the locks of the preloaded library, which measures it.
fn of_spinning(profile: &Profile) -> Option<Note> {
    let cpu = &profile.cpu;
    let used = cpu.kernel + cpu.program + cpu.lock_spin;
    let share = cpu.lock_spin / used.max(f64::MIN_POSITIVE);
    let (threads, cpus) = too_many_threads(profile).filter(|_| share >= SPINNING)?;
    let advice = "use a lock that sleeps instead of spinning, or no more threads than CPUs: who spins takes the CPU \
                  from who has the lock";
    let evidence = format!(
        "{} of the CPU time went into waits for locks, with {threads} threads on {cpus} CPUs",
        percent(share)
    );
    Some(note(Cause::SpinningOversubscribed, None, advice.to_owned(), evidence))
}

/// Advice about spinning in the program's own locks, according to samples.
fn of_own_spinning(profile: &Profile) -> Option<Note> {
    let samples = profile.cpu_samples.as_ref()?;
    let share = samples.shares.spin_program;
    let (threads, cpus) = too_many_threads(profile).filter(|_| share >= SPINNING)?;
    let function = samples.functions.iter().find(|function| function.part == Part::SpinProgram)?;
    let advice = "let the program spin less for locks of its own, and sleep sooner, or have no more threads than CPUs: who \
                  spins takes the CPU from who has the lock";
    let evidence = format!(
        "{} of the CPU time{} went into spinning, most of it in {}, by {} samples, with {threads} threads on {cpus} CPUs",
        percent(share),
        if samples.kernel_permitted { "" } else { " outside of the kernel" },
        function.name,
        samples.shares.samples,
    );
    Some(note(Cause::SpinningOversubscribed, None, advice.to_owned(), evidence))
}

/// The threads and the CPUs, if a process has more threads at a time than there are CPUs, and they
/// want the CPUs: beside other programs they get less than they want.
fn too_many_threads(profile: &Profile) -> Option<(u32, u32)> {
    let cpu = &profile.cpu;
    let wanted = cpu.kernel + cpu.program + cpu.lock_spin + cpu.ready.unwrap_or_default();
    let cpus = profile.host.as_ref()?.cpus;
    let threads = profile.processes.iter().map(|process| process.threads).max()?;
    let is_busy = wanted >= BUSY * profile.wall * f64::from(cpus);
    (threads > cpus && is_busy).then_some((threads, cpus))
}

fn of_neighbours(profile: &Profile, rows: (usize, usize), neighbours: &Neighbours) -> Note {
    let name = |row: usize| &profile.locks[row].short;
    let Neighbours { pairs, moves, moves_beside } = neighbours;
    let (advice, evidence) = if rows.0 == rows.1 {
        let advice = format!("lay the locks of {} in cache lines of their own", name(rows.0));
        let evidence = format!(
            "{pairs} pairs of them share a line of 64 bytes, and moved between CPUs {} times",
            moves + moves_beside
        );
        (advice, evidence)
    } else {
        let (one, other) = (name(rows.0), name(rows.1));
        let advice = format!("lay {one} and {other} in cache lines of their own");
        let evidence = format!(
            "they share a line of 64 bytes, and moved between CPUs {moves} and {moves_beside} times"
        );
        (advice, evidence)
    };
    note(Cause::FalseSharing, Some(rows.0), advice, evidence)
}

fn of_circle(profile: &Profile, cycle: &Cycle) -> Note {
    let steps = || cycle.orders.iter().map(|step| &profile.orders[*step]);
    let name = |row: usize| &profile.locks[row].short;
    let step = |order: &Order| {
        let place = order.wanted_frames.iter().find_map(|frame| frame.function.clone());
        let place = place.unwrap_or_else(|| "an unknown place".to_owned());
        format!("{} is taken with {} held in {place}", name(order.wanted), name(order.held))
    };
    let lock = steps().next().map(|order| order.held);
    if cycle.orders.len() == 1 {
        let advice = "release the lock before it is taken again, or make it a recursive one: a thread that waits for \
                      what it has waits for ever";
        let evidence = steps().map(step).collect::<String>() + ", by the same thread";
        return note(Cause::LockOrder, lock, advice.to_owned(), evidence);
    }
    let now = match (cycle.deadlocked, cycle.gives_up) {
        (true, _) => "; threads waited so for each other at the end",
        (_, true) => {
            "; threads waited so for each other at the end, one of them until a deadline: that ends by itself"
        }
        _ => "",
    };
    let advice = "take these locks in one order everywhere: threads that take them so at the same time wait for each \
                  other for ever";
    let evidence = steps().map(step).collect::<Vec<_>>().join("; ") + now;
    note(Cause::LockOrder, lock, advice.to_owned(), evidence)
}
