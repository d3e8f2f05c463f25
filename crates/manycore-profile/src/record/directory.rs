//! Where processes write their statistics.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::analyze::groups::overflow_processes::Others;
use crate::analyze::offloaded_calls::Tally;
use crate::analyze::process::ProcessStats;
use crate::analyze::process::{Layout, StatsFile};
use manycore_stats::Mapping;
use rustix::fs::statvfs;

use super::entry::{Entry, Files, Subject, entries};
use super::namespaces::Inner;
use super::poll::Poller;
use super::private_dir::{PrivateDir, remove_abandoned};
use manycore_launch::failure::{Failure, Result};

/// The directory must have room for this many processes that use all of their file. Files are
/// sparse, and most processes use about a hundredth of theirs; but without room a process would
/// die.
const FULL_FILES: u64 = 8;
/// If there are more files than this, the files of ended processes are read and removed while
/// others still run.
const FILES_MAX: usize = 128;
/// The most ended processes that are kept one by one; later ones are kept as one.
const PROCESSES_MAX: usize = 1_000;

/// A directory for the statistics of one run.
#[derive(Debug)]
pub struct Directory {
    place: PrivateDir,
    /// By processes that have ended, whose files are gone.
    folded: Left,
}

/// What processes have left.
#[derive(Debug, Default)]
pub struct Left {
    /// About their locks.
    pub locks: Vec<ProcessStats>,
    /// The sum of the processes beyond that number.
    pub others: Others,
    /// About their system calls.
    pub calls: Tally,
    /// What could not be read, and why.
    pub lost: Vec<String>,
    /// For each process (namespace and number), its last program: the start, and whether it
    /// reported its end.
    last: BTreeMap<(u64, u32), (u64, bool)>,
}

impl Directory {
    /// Makes one in memory if there is room, else under `$TMPDIR`.
    pub fn new() -> Result<Self> {
        let places = [PathBuf::from("/dev/shm"), env::temp_dir()];
        places.iter().for_each(|place| remove_abandoned(place));
        let needed = FULL_FILES * size_of::<Mapping>() as u64;
        let roomy = places.iter().filter(|place| free(place).is_some_and(|free| free >= needed));
        let made = roomy.map(|place| PrivateDir::make(place)).find_map(io::Result::ok);
        let Some(place) = made else {
            let [first, second] = places.map(|place| place.display().to_string());
            return Err(Failure::bad_input(
                format!("there is no room for statistics in {first} and {second}"),
                format!("free {} MiB there, or let TMPDIR name another directory", needed >> 20),
            ));
        };
        Ok(Self { place, folded: Left::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Once there are many files of ended processes, reads and removes them; for locks, together
    /// with their samples.
    pub fn fold(&mut self, locks: &Files, poller: &mut Poller) {
        for (subject, files) in
            [(Subject::Locks, locks), (Subject::Calls, &self.files(Subject::Calls))]
        {
            if files.entries.len() > FILES_MAX {
                let over = files.entries.iter().filter(|entry| files.ended.contains(&entry.path));
                over.for_each(|entry| self.folded.take(entry, subject, poller));
            }
        }
    }

    /// What there is.
    pub fn files(&self, subject: Subject) -> Files {
        let entries = self.entries(subject);
        let ended = ended(&entries).map(|entry| entry.path.clone()).collect();
        Files { entries, ended }
    }

    /// What all processes have left.
    pub fn read_all(mut self, poller: &mut Poller) -> Left {
        for subject in Subject::ALL {
            let entries = self.entries(subject);
            entries.iter().for_each(|entry| self.folded.take(entry, subject, poller));
        }
        self.folded
    }

    /// The files; those of a process in the order of their creation.
    pub fn entries(&self, subject: Subject) -> Vec<Entry> {
        // Our own: readable.
        entries(self.path(), subject).unwrap_or_default()
    }
}

impl Left {
    /// The number of processes, except for `but_for`, that have not announced their end. They ended
    /// by _exit, by a signal, or with an unknown program.
    pub fn silent(&self, but_for: &[u32]) -> usize {
        let is_known = |(namespace, pid): &(u64, u32)| *namespace == 0 && but_for.contains(pid);
        self.last.iter().filter(|(process, (_, said))| !said && !is_known(process)).count()
    }

    fn note_end(&mut self, entry: &Entry, said: bool) {
        let last = self.last.entry((entry.namespace, entry.pid)).or_insert((entry.started, said));
        if last.0 <= entry.started {
            *last = (entry.started, said);
        }
    }

    /// Reads a file, and removes it.
    fn take(&mut self, entry: &Entry, subject: Subject, poller: &mut Poller) {
        match subject {
            Subject::Locks if poller.found_empty(&entry.path) => {
                // If the directory cannot be removed alone, it is removed with the outer one: it is
                // empty.
                let _ = fs::remove_file(&entry.path);
                self.note_end(entry, false);
            }
            Subject::Locks => {
                let file = self.open(entry);
                if file.is_none() {
                    self.note_end(entry, false);
                }
                if let Some(file) = file {
                    let one = ProcessStats::read(file.get());
                    self.note_end(entry, one.exited);
                    if self.locks.len() < PROCESSES_MAX {
                        self.locks.push(one);
                    } else {
                        let numbers = self.others.add(&one);
                        poller.sum_up(&one, &numbers);
                    }
                }
            }
            Subject::Calls => {
                if let Some(file) = self.open(entry) {
                    self.calls.add(file.get());
                }
            }
        }
    }

    /// Opens a file and then removes it, in this order: a living process continues to write to it.
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

/// Those of them that no process writes any more.
pub fn ended(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let inner = Inner::look_for(entries);
    let is_ended = move |(at, entry): &(usize, &Entry)| {
        // Sorted: only the last file of a process can still be written.
        let is_same = |next: &Entry| (next.namespace, next.pid) == (entry.namespace, entry.pid);
        entries.get(at + 1).is_some_and(is_same) || !is_there(entry, &inner)
    };
    entries.iter().enumerate().filter(is_ended).map(|(_, entry)| entry)
}

/// Whether the process of a file is there, in whatever state.
fn is_there(entry: &Entry, inner: &Inner) -> bool {
    match entry.namespace {
        0 => Path::new(&format!("/proc/{}", entry.pid)).exists(),
        namespace => inner.has(namespace, entry.pid),
    }
}

/// Reads all statistics files of a directory. There is none for a process that was killed before it
/// had any.
///
/// # Errors
///
/// [`Failure`], if there is no such directory.
pub fn read(directory: &Path) -> Result<Vec<ProcessStats>> {
    let unreadable = |error| {
        Failure::failed(format!("cannot read statistics in '{}': {error}", directory.display()))
    };
    let mut processes = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        if let Ok(Some(file)) = StatsFile::<Mapping>::open(&entry.map_err(unreadable)?.path()) {
            processes.push(ProcessStats::read(file.get()));
        }
    }
    Ok(processes)
}

fn free(place: &Path) -> Option<u64> {
    let system = statvfs(place).ok()?;
    Some(system.f_bavail * system.f_frsize)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::record::entry::OWN;

    /// A file of a process' calls, of which one was moved.
    fn leave_calls(directory: &Path, pid: u32, started: u64) {
        use manycore_stats::syscalls::{Function, MAGIC, Mapping, Outcome};
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
        fs::write(directory.join(format!("{pid}-{started}-0.syscalls")), bytes).unwrap();
    }

    #[test]
    fn the_same_number_in_another_namespace_is_another_process() {
        let entry = |namespace: u64, started| {
            Entry::of(
                format!("{}-{started}-{namespace}.stats", std::process::id()).into(),
                Subject::Locks,
            )
            .unwrap()
        };
        let own = *OWN;
        // No namespace has this number.
        let mut entries = vec![entry(own, 1), entry(own, 3), entry(7, 2)];
        entries.sort();
        let ended: Vec<u64> = ended(&entries).map(|entry| entry.started).collect();
        assert_eq!(ended, [1, 2], "one that was replaced, and one that is not there");
        assert_eq!((entries[1].own_pid(), entries[2].own_pid()), (Some(std::process::id()), None));
    }

    #[test]
    fn calls_of_many_processes_are_folded_while_they_run_and_counted_once() {
        let mut directory = Directory::new().unwrap();
        let mut poller = Poller::new(crate::clock::Clock::start(), Duration::from_secs(1));
        let own = std::process::id();
        let files = |directory: &Directory| directory.entries(Subject::Calls).len();
        leave_calls(directory.path(), own, 1);
        directory.fold(&Files::default(), &mut poller);
        assert_eq!(files(&directory), 1, "few files stay");
        // No process has such a number.
        for number in 0..FILES_MAX as u32 {
            leave_calls(directory.path(), u32::MAX - number, 1);
        }
        leave_calls(directory.path(), own, 2);
        directory.fold(&Files::default(), &mut poller);
        assert_eq!(files(&directory), 1, "that of a process that runs stays");
        let left = directory.read_all(&mut poller);
        assert_eq!(left.lost, Vec::<String>::new());
        let calls = left.calls.finish(&crate::clock::Rate { ticks_per_ns: 1.0, origin: 0 });
        assert_eq!((calls.processes, calls.moved), (FILES_MAX as u32 + 2, FILES_MAX as u64 + 2));
    }
}
