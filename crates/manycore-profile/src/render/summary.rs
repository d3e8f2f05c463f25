//! The counts of a whole program in a line.

use crate::profile::Profile;

/// The counts of a whole program, in a line.
pub fn line(profile: &Profile) -> String {
    let objects: u64 = profile.locks.iter().map(|lock| lock.objects).sum();
    let acquired: u64 = profile.locks.iter().map(|lock| lock.acquired).sum();
    let contended: u64 = profile.locks.iter().map(|lock| lock.contended).sum();
    let waited_ns: u64 = profile.locks.iter().map(|lock| lock.wait.total_ns).sum();
    let longest_ns = profile.locks.iter().filter_map(|lock| lock.wait.max_ns).max();
    format!(
        "{}: {}, {}, {}; {} had to wait, {} in all, {} at most",
        profile.lock,
        processes(profile),
        counted(objects, "lock", "locks"),
        counted(acquired, "acquisition", "acquisitions"),
        share(contended, acquired),
        time(waited_ns),
        time(longest_ns.unwrap_or_default()),
    )
}

/// The table of processes. One of them may stand for all that were not kept one by one.
fn processes(profile: &Profile) -> String {
    let (kept, many): (Vec<_>, Vec<_>) =
        profile.processes.iter().partition(|process| process.pid != 0);
    let how = if many.is_empty() { "" } else { "more than " };
    how.to_owned() + &counted(kept.len() as u64, "process", "processes")
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn share(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    manycore_measure::quantity(percent, "%")
}

fn time(ns: u64) -> String {
    manycore_measure::duration(ns as f64).trim_end().to_owned()
}
