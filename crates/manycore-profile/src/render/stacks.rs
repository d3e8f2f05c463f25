//! Stacks and ends of programs, as all forms show them.

use crate::profile::{Exit, Frame, Profile};

/// Stacks of waits: the lock's place in the profile, the time waited in nanoseconds, the calls,
/// innermost first.
///
/// Of a profile without whole stacks, those places in which locks were waited for most.
pub fn stacks(profile: &Profile) -> Vec<(usize, u64, &[Frame])> {
    if !profile.stacks.is_empty() {
        let all = profile.stacks.iter();
        return all.map(|one| (one.lock, one.wait_ns, &one.frames[..])).collect();
    }
    let locks = profile.locks.iter().enumerate();
    let sites = locks.flat_map(|(place, lock)| lock.waits_in.iter().map(move |s| (place, lock, s)));
    let waited = sites.map(|(place, lock, site)| {
        (place, (site.share * lock.wait.total_ns as f64) as u64, &site.frames[..])
    });
    waited.filter(|(_, ns, _)| *ns > 0).collect()
}

/// How a program ended, in words.
pub fn end(exit: Exit) -> String {
    match exit {
        Exit::Status(status) => format!("exit status {status}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    }
}
