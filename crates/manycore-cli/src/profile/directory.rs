//! Where processes write their statistics.

use std::env;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use manycore_profile::layout::Mapping;
use manycore_profile::mapping::{Layout, StatsFile};
use manycore_profile::moved::Tally;
use manycore_profile::process::ProcessStats;
use rustix::fs::statvfs;
use tempfile::TempDir;

use crate::failure::{Failure, Result};

/// Room that has to be there: for as many processes that use all of their file. Files are sparse, and most processes
/// use some hundredth of theirs; but one that found no room at all would die.
const FULL_FILES: u64 = 8;
/// More files than this, and those of processes that have ended are read and removed while others still run.
const FILES_MAX: usize = 128;

/// A directory for the statistics of one run.
#[derive(Debug)]
pub struct Directory {
    directory: TempDir,
    /// By processes that have ended, whose files are gone.
    folded: Left,
}

/// What processes have left.
#[derive(Debug, Default)]
pub struct Left {
    /// About their locks.
    pub locks: Vec<ProcessStats>,
    /// About their system calls.
    pub calls: Tally,
    /// What could not be read, and why.
    pub lost: Vec<String>,
}

/// What a file is about. A process has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Its locks.
    Locks,
    /// Its system calls.
    Calls,
}

impl Subject {
    const ALL: [Self; 2] = [Self::Locks, Self::Calls];

    fn ending(self) -> &'static str {
        match self {
            Self::Locks => ".stats",
            Self::Calls => ".syscalls",
        }
    }
}

/// A statistics file: `PID-TICKS` and the ending of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The process.
    pub pid: u32,
    /// When its statistics began, in ticks.
    pub started: u64,
    /// The file.
    pub path: PathBuf,
}

impl Directory {
    /// Makes one in memory if there is room, else under `$TMPDIR`.
    pub fn new() -> Result<Self> {
        let places = [PathBuf::from("/dev/shm"), env::temp_dir()];
        let needed = FULL_FILES * size_of::<Mapping>() as u64;
        let roomy = places.iter().filter(|place| free(place).is_some_and(|free| free >= needed));
        // Writable by all: a server gives up its privileges, and its children write as somebody else. Like in /tmp,
        // nobody can remove or list what is another's.
        let mut builder = tempfile::Builder::new();
        builder.prefix("manycore-").permissions(Permissions::from_mode(0o1733));
        let made = roomy.map(|place| builder.tempdir_in(place)).find_map(|made| made.ok());
        let Some(directory) = made else {
            let [first, second] = places.map(|place| place.display().to_string());
            return Err(Failure::bad_input(
                format!("there is no room for statistics in {first} and {second}"),
                format!("free {} MiB there, or let TMPDIR name another directory", needed >> 20),
            ));
        };
        // The umask has been applied to the mode above.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o1733)).map_err(|error| {
            Failure::failed(format!("cannot open {} to all: {error}", directory.path().display()))
        })?;
        Ok(Self { directory, folded: Left::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Reads and removes what processes have left that have ended, if that is much.
    pub fn fold(&mut self) {
        for subject in Subject::ALL {
            let entries = self.entries(subject);
            if entries.len() > FILES_MAX {
                ended(&entries).for_each(|entry| self.folded.take(entry, subject));
            }
        }
    }

    /// What all processes have left.
    pub fn read_all(mut self) -> Left {
        for subject in Subject::ALL {
            let entries = self.entries(subject);
            entries.iter().for_each(|entry| self.folded.take(entry, subject));
        }
        self.folded
    }

    /// The files, those of a process in the order in which they were made.
    pub fn entries(&self, subject: Subject) -> Vec<Entry> {
        // Our own: readable.
        entries(self.path(), subject).unwrap_or_default()
    }
}

impl Left {
    /// Reads a file, and removes it.
    fn take(&mut self, entry: &Entry, subject: Subject) {
        match subject {
            Subject::Locks => {
                if let Some(file) = self.open(entry) {
                    self.locks.push(ProcessStats::read(file.get()));
                }
            }
            Subject::Calls => {
                if let Some(file) = self.open(entry) {
                    self.calls.add(file.get());
                }
            }
        }
    }

    /// Opens and removes it, in this order: a process that is still there goes on writing to it.
    fn open<L: Layout>(&mut self, entry: &Entry) -> Option<StatsFile<L>> {
        let file = StatsFile::open(&entry.path);
        // If it cannot be removed it would be counted twice.
        if let Err(error) = fs::remove_file(&entry.path) {
            self.lost.push(format!("{}: {error}", entry.path.display()));
            return None;
        }
        file.unwrap_or_else(|error| {
            self.lost.push(error.to_string());
            None
        })
    }
}

/// The files in a directory, those of a process in the order in which they were made.
pub fn entries(directory: &Path, subject: Subject) -> io::Result<Vec<Entry>> {
    let files = fs::read_dir(directory)?.flatten();
    let mut entries: Vec<_> = files.filter_map(|file| Entry::of(file.path(), subject)).collect();
    entries.sort();
    Ok(entries)
}

/// Those of them that nobody writes any more.
pub fn ended(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let is_ended = |(at, entry): &(usize, &Entry)| {
        // Sorted: only the last file of a process can still be written.
        let replaced = entries.get(at + 1).is_some_and(|next| next.pid == entry.pid);
        replaced || !entry.is_alive()
    };
    entries.iter().enumerate().filter(is_ended).map(|(_, entry)| entry)
}

impl Entry {
    /// Whether its process is there, in whatever state.
    pub fn is_alive(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// The entry of a path that is called like one.
    pub fn of(path: PathBuf, subject: Subject) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(subject.ending())?;
        let (pid, started) = name.split_once('-')?;
        Some(Self { pid: pid.parse().ok()?, started: started.parse().ok()?, path })
    }
}

fn free(place: &Path) -> Option<u64> {
    let system = statvfs(place).ok()?;
    Some(system.f_bavail * system.f_frsize)
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
        assert_eq!(entry("/dev/shm/manycore-x/12-345.stats", locks), Some((12, 345)));
        assert_eq!(entry("/dev/shm/manycore-x/12-345.stats", calls), None);
        assert_eq!(entry("/dev/shm/manycore-x/12-345.syscalls", calls), Some((12, 345)));
        assert_eq!(entry("/dev/shm/manycore-x/12-345.tmp", locks), None);
        assert_eq!(entry("/dev/shm/manycore-x/other.stats", locks), None);
    }

    /// A file of a process' calls, of which one was moved.
    fn leave_calls(directory: &Path, pid: u32, started: u64) {
        use manycore_profile::layout::syscalls::{Function, MAGIC, Mapping, Outcome};
        use std::sync::atomic::Ordering::Relaxed; // one thread writes, and reads afterwards
        // SAFETY: numbers, for which zero is a value.
        let mapping: Box<Mapping> = unsafe { Box::new_zeroed().assume_init() };
        mapping.header.magic.store(MAGIC, Relaxed);
        mapping.count(0, Function::Read, Outcome::Moved);
        // SAFETY: as many bytes as it has, all of them initialised.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                std::ptr::from_ref(&*mapping).cast::<u8>(),
                size_of::<Mapping>(),
            )
        };
        fs::write(directory.join(format!("{pid}-{started}.syscalls")), bytes).unwrap();
    }

    #[test]
    fn calls_of_many_processes_are_folded_while_they_run_and_counted_once() {
        let mut directory = Directory::new().unwrap();
        let own = std::process::id();
        let files = |directory: &Directory| directory.entries(Subject::Calls).len();
        leave_calls(directory.path(), own, 1);
        directory.fold();
        assert_eq!(files(&directory), 1, "few files stay");
        // No process has such a number.
        for number in 0..FILES_MAX as u32 {
            leave_calls(directory.path(), u32::MAX - number, 1);
        }
        leave_calls(directory.path(), own, 2);
        directory.fold();
        assert_eq!(files(&directory), 1, "that of a process that runs stays");
        let left = directory.read_all();
        assert_eq!(left.lost, Vec::<String>::new());
        let calls =
            left.calls.finish(&manycore_profile::clock::Rate { ticks_per_ns: 1.0, origin: 0 });
        assert_eq!((calls.processes, calls.moved), (FILES_MAX as u32 + 2, FILES_MAX as u64 + 2));
    }

    #[test]
    fn anybody_can_write_and_nobody_can_look() {
        let directory = Directory::new().unwrap();
        let mode = fs::metadata(directory.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1733);
    }
}
