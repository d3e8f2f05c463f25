//! The files that the processes of a program write their statistics to, by their names.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// This command's namespace; 0 if that is not known.
pub static OWN: LazyLock<u64> = LazyLock::new(|| namespace_of("self").unwrap_or(0));

/// A process' namespace, by the kernel's number. The kernel may refuse the number for another
/// user's process.
pub(super) fn namespace_of(process: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid")).ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// The subject of a file. A process has one file of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Its locks.
    Locks,
    /// Its system calls.
    Calls,
}

impl Subject {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Locks, Self::Calls];

    fn ending(self) -> &'static str {
        match self {
            Self::Locks => ".stats",
            Self::Calls => ".syscalls",
        }
    }
}

/// A statistics file: `PID-TICKS-NAMESPACE` and the ending of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The PID namespace of the process' number, if it is not ours; otherwise 0.
    pub namespace: u64,
    /// The process.
    pub pid: u32,
    /// When its statistics began, in ticks.
    pub started: u64,
    /// The file.
    pub path: PathBuf,
}

/// The files of a subject.
#[derive(Debug, Default)]
pub struct Files {
    /// All files; those of a process in the order of their creation.
    pub entries: Vec<Entry>,
    /// Files to which no process writes any more. This is checked before they are read, so they are
    /// complete.
    pub ended: HashSet<PathBuf>,
}

/// The files in a directory; those of a process in the order of their creation.
pub fn entries(directory: &Path, subject: Subject) -> io::Result<Vec<Entry>> {
    let files = fs::read_dir(directory)?.flatten();
    let mut entries: Vec<_> = files.filter_map(|file| Entry::of(file.path(), subject)).collect();
    entries.sort();
    Ok(entries)
}

impl Entry {
    /// The number of its process, if that is the same in our namespace.
    pub fn own_pid(&self) -> Option<u32> {
        (self.namespace == 0).then_some(self.pid)
    }

    /// The entry of a path whose name has the form of one.
    pub fn of(path: PathBuf, subject: Subject) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(subject.ending())?;
        let mut parts = name.splitn(3, '-').map(|part| part.parse::<u64>().ok());
        let (pid, started, namespace) = (parts.next()??, parts.next()??, parts.next()??);
        let namespace = if namespace == *OWN { 0 } else { namespace };
        Some(Self { namespace, pid: pid.try_into().ok()?, started, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statistics_are_read() {
        let entry = |name: &str, subject| {
            Entry::of(name.into(), subject).map(|entry| (entry.pid, entry.started))
        };
        let [locks, calls] = Subject::ALL;
        assert_eq!(entry("/dev/shm/manycore-x/12-345-0.stats", locks), Some((12, 345)));
        assert_eq!(entry("/dev/shm/manycore-x/12-345-0.stats", calls), None);
        assert_eq!(entry("/dev/shm/manycore-x/12-345-0.syscalls", calls), Some((12, 345)));
        assert_eq!(entry("/dev/shm/manycore-x/12-345.stats", locks), None);
        assert_eq!(entry("/dev/shm/manycore-x/12-345.tmp", locks), None);
        assert_eq!(entry("/dev/shm/manycore-x/other.stats", locks), None);
    }
}
