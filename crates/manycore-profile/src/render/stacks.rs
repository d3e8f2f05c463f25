//! Stacks and ends of programs, as all forms show them.

use std::collections::HashMap;

use crate::profile::{Exit, Frame, Profile};

/// Waits of a program for one lock at one place.
#[derive(Clone, Copy, Debug)]
pub struct Waits<'a> {
    /// The lock: its place in the profile.
    pub lock: usize,
    /// Sampled waits.
    pub sampled: u64,
    /// The time waited, in nanoseconds.
    pub ns: u64,
    /// The calls, innermost first.
    pub frames: &'a [Frame],
}

/// Stacks of waits. In a profile without whole stacks, the places where threads waited most for
/// locks.
pub fn stacks(profile: &Profile) -> Vec<Waits<'_>> {
    if !profile.stacks.is_empty() {
        let waits = profile.stacks.iter().map(|one| Waits {
            lock: one.lock,
            sampled: one.waits,
            ns: one.wait_ns,
            frames: &one.frames,
        });
        return waits.collect();
    }
    let locks = profile.locks.iter().enumerate();
    let sites = locks.flat_map(|(place, lock)| lock.waits_in.iter().map(move |s| (place, lock, s)));
    let waits = sites.map(|(place, lock, site)| Waits {
        lock: place,
        sampled: site.waits,
        ns: (site.share * lock.wait.total_ns as f64) as u64,
        frames: &site.frames,
    });
    waits.filter(|one| one.ns > 0).collect()
}

/// The number of waits that each of these stacks represents. All waits of a lock are counted, and
/// are divided among its stacks in the proportion of the samples.
pub fn counts(profile: &Profile, stacks: &[Waits]) -> Vec<u64> {
    let mut sampled: HashMap<usize, u64> = HashMap::new();
    for one in stacks {
        *sampled.entry(one.lock).or_default() += one.sampled;
    }
    let count = |one: &Waits| {
        let contended = profile.locks[one.lock].contended as f64;
        let share = one.sampled as f64 / sampled[&one.lock].max(1) as f64;
        (contended * share).round() as u64
    };
    stacks.iter().map(count).collect()
}

/// How a program ended, in words.
pub fn end(exit: Exit) -> String {
    match exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    }
}
