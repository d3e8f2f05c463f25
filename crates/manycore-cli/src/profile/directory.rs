//! Where processes write their statistics.

use std::env;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use manycore_profile::layout::Mapping;
use manycore_profile::mapping::StatsFile;
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
    /// Of processes that have ended, whose files are gone.
    folded: Vec<ProcessStats>,
    lost: Vec<String>,
}

/// A statistics file: `PID-TICKS.stats`.
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
        Ok(Self { directory, folded: Vec::new(), lost: Vec::new() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Reads and removes what processes have left that have ended, if that is much.
    pub fn fold(&mut self) {
        let entries = self.entries();
        if entries.len() <= FILES_MAX {
            return;
        }
        for entry in ended(&entries) {
            let before = self.folded.len();
            self.read(entry);
            // If it cannot be removed it would be counted twice.
            if let Err(error) = fs::remove_file(&entry.path) {
                self.folded.truncate(before);
                self.lost.push(format!("{}: {error}", entry.path.display()));
            }
        }
    }

    /// What all processes have left, and what could not be read.
    pub fn read_all(mut self) -> (Vec<ProcessStats>, Vec<String>) {
        for entry in self.entries() {
            self.read(&entry);
        }
        (self.folded, self.lost)
    }

    fn read(&mut self, entry: &Entry) {
        match StatsFile::open(&entry.path) {
            Ok(Some(file)) => self.folded.push(ProcessStats::read(file.get())),
            Ok(None) => {}
            Err(error) => self.lost.push(error.to_string()),
        }
    }

    /// The files, those of a process in the order in which they were made.
    pub fn entries(&self) -> Vec<Entry> {
        // Our own: readable.
        entries(self.path()).unwrap_or_default()
    }
}

/// The files in a directory, those of a process in the order in which they were made.
pub fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let files = fs::read_dir(directory)?.flatten();
    let mut entries: Vec<_> = files.filter_map(|file| Entry::of(file.path())).collect();
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
    pub fn of(path: PathBuf) -> Option<Self> {
        let (pid, started) = path.file_name()?.to_str()?.strip_suffix(".stats")?.split_once('-')?;
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
        let entry = |name: &str| Entry::of(name.into()).map(|entry| (entry.pid, entry.started));
        assert_eq!(entry("/dev/shm/manycore-x/12-345.stats"), Some((12, 345)));
        assert_eq!(entry("/dev/shm/manycore-x/12-345.tmp"), None);
        assert_eq!(entry("/dev/shm/manycore-x/other.stats"), None);
    }

    #[test]
    fn anybody_can_write_and_nobody_can_look() {
        let directory = Directory::new().unwrap();
        let mode = fs::metadata(directory.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1733);
    }
}
