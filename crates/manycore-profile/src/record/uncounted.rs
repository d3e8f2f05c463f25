//! Processes that were not counted, or not to their end, and why.

use std::fs;

use crate::analyze::process::ProcessStats;
use crate::profile::Outsider;
use crate::safe;

use manycore_launch::child::Running;

/// The program itself, when it has ended.
pub struct Leader {
    /// Its process.
    pub pid: u32,
    /// The name by which the kernel knew it then.
    ended_as: String,
}

impl Leader {
    /// A program that has ended and is not reaped yet, so that the kernel still knows its times.
    pub fn of(ended: &Running) -> Self {
        let pid = ended.pid().as_raw_nonzero().get() as u32;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Self { pid, ended_as: name.trim_end().to_owned() }
    }
}

/// Processes that are not counted, or not to their end: those that were seen, those that report it
/// themselves, and the program if it ended as another program than the last counted one.
pub fn uncounted(
    stats: &[ProcessStats],
    leader: &Leader,
    mut seen: Vec<Outsider>,
) -> Vec<Outsider> {
    for one in stats.iter().filter(|one| one.uncounted > 0) {
        let why = format!(
            "{} that it forked could make no file for statistics: the directory for those cannot be seen or written there (chroot, \
             sandbox, no room)",
            quantity(one.uncounted)
        );
        let program = safe(&one.program());
        seen.push(Outsider { pid: one.pid, parent: one.parent, program, why });
    }
    for one in stats.iter().filter(|one| one.clock_step_ns > 0) {
        let why = format!(
            "it may not read the time stamp counter (PR_SET_TSC, seccomp's strict mode): its times are in steps of {} ms, and in \
             strict mode some counts are missing",
            f64::from(one.clock_step_ns) / 1e6
        );
        seen.push(Outsider {
            pid: one.pid,
            parent: one.parent,
            program: safe(&one.program()),
            why,
        });
    }
    let last = stats.iter().filter(|one| one.pid == leader.pid).max_by_key(|one| one.started);
    if let Some(last) = last.filter(|last| !last.exited && !last.started_as.is_empty())
        && last.started_as != leader.ended_as
        && !leader.ended_as.is_empty()
        && seen.iter().all(|one| one.pid != leader.pid)
    {
        let why = "the library was not in it, or could not count, when it ended: its environment was cleared, or the directory for \
                   statistics cannot be seen there (chroot)";
        let (parent, program) = (last.parent, safe(&leader.ended_as));
        seen.push(Outsider { pid: leader.pid, parent, program, why: why.into() });
    }
    seen
}

fn quantity(children: u32) -> String {
    if children == 1 { "a child".into() } else { format!("{children} children") }
}
