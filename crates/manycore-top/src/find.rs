//! Programs that keep statistics while they run.
//!
//! A process with statistics has its file mapped, and the kernel lists where that is. (The
//! environment does not show it, because programs overwrite it.) All processes that one command has
//! started write into one directory, and are one program.
//!
//! A process in a container has another root, and another number for itself: its directory is then
//! reached by way of its root, which is kept open, so that it stays in reach after the process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manycore_profile::command::joined;
use manycore_profile::safe;

use manycore_launch::failure::{Failure, Result};
use manycore_profile::record::entry::{Entry, Subject};
use manycore_profile::record::namespaces::number_inside;

/// How a program comes to keep statistics.
const REMEDY: &str = "programs do that were started by `manycore profile -- CMD` or `manycore run --stats -- CMD`; \
                      `manycore top -- CMD` starts one";

/// A program that keeps statistics.
#[derive(Clone, Debug)]
pub struct Program {
    /// The directory where its processes write them, by a path that this process can open.
    pub directory: PathBuf,
    /// The process that began first.
    pub pid: u32,
    /// Keeps that path valid, if it leads through another root.
    _root: Option<Arc<File>>,
}

impl Program {
    /// The program whose statistics are in this directory, in the same mount namespace.
    pub fn here(directory: PathBuf, pid: u32) -> Self {
        Self { directory, pid, _root: None }
    }

    /// The program of a process that has written to a directory, given by a path in that process'
    /// root.
    fn of(pid: u32, directory: &Path) -> Self {
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        let below = directory.strip_prefix("/").unwrap_or(directory);
        let there = identity(&root.join(below));
        // A user who may not list the directory may not read statistics, either, and then gets that
        // error.
        if there.is_none() || there == identity(directory) {
            return Self::here(directory.to_owned(), pid);
        }
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let Ok(root) = File::options().read(true).custom_flags(flags).open(root) else {
            return Self::here(directory.to_owned(), pid);
        };
        let place = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
        Self { directory: place.join(below), pid, _root: Some(Arc::new(root)) }
    }
}

/// The program of a process; without a process, the only program, or the only one in a cgroup.
pub fn program(pid: Option<u32>, cgroup: Option<&str>) -> Result<Program> {
    match (pid, cgroup) {
        (Some(pid), _) => of_process(pid),
        (None, None) => only(all(|_| true)),
        (None, Some(cgroup)) => {
            let found = all(|pid| is_within(pid, cgroup));
            if found.is_empty() {
                return Err(Failure::bad_input(
                    format!("no program in the cgroup '{cgroup}' keeps statistics of its locks"),
                    "name it as /proc/PID/cgroup does, after the last ':'",
                ));
            }
            only(found)
        }
    }
}

/// Whether a process is in a cgroup or below it, in any hierarchy.
fn is_within(pid: u32, cgroup: &str) -> bool {
    let cgroup = cgroup.strip_prefix("/sys/fs/cgroup").unwrap_or(cgroup).trim_matches('/');
    let list = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    list.lines().filter_map(|line| line.splitn(3, ':').nth(2)).any(|path| {
        let rest = path.trim_matches('/').strip_prefix(cgroup);
        rest.is_some_and(|rest| rest.is_empty() || cgroup.is_empty() || rest.starts_with('/'))
    })
}

fn of_process(pid: u32) -> Result<Program> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|error| {
        let remedy = "let --pid name a process that runs; `manycore top` without it finds those \
                      that keep statistics";
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::bad_input(format!("there is no process {pid}"), remedy)
            }
            _ => Failure::bad_input(
                format!("process {pid} cannot be looked at: {error}"),
                "it is another user's: run `manycore top` as that user, or as root",
            ),
        }
    })?;
    match statistics(&maps, number_inside(pid)) {
        Mapped::Statistics(entry) => {
            let own = Program::of(pid, directory_of(&entry));
            let place = identity(&own.directory);
            let same = |one: &Program| place.is_some() && identity(&one.directory) == place;
            Ok(all(|_| true).into_iter().find(same).unwrap_or(own))
        }
        Mapped::Removed => Err(Failure::bad_input(
            format!(
                "the statistics of process {pid} are gone: the command that started it has ended"
            ),
            REMEDY,
        )),
        Mapped::Library => Err(Failure::bad_input(
            format!("process {pid} ({}) has another lock, but keeps no statistics", command(pid)),
            REMEDY,
        )),
        Mapped::Nothing => Err(Failure::bad_input(
            format!("process {pid} ({}) keeps no statistics of its locks", command(pid)),
            REMEDY,
        )),
    }
}

fn only(mut found: Vec<Program>) -> Result<Program> {
    match found.len() {
        0 => Err(Failure::bad_input("no program that runs keeps statistics of its locks", REMEDY)),
        1 => Ok(found.remove(0)),
        n => {
            let listed = found.iter().map(|one| format!("{} ({})", one.pid, command(one.pid)));
            let listed: Vec<String> = listed.collect();
            Err(Failure::bad_input(
                format!("{n} programs keep statistics: {}", listed.join(", ")),
                "name one of them by --pid",
            ))
        }
    }
}

/// All programs with statistics that we may read, among the wanted processes.
fn all(is_wanted: impl Fn(u32) -> bool) -> Vec<Program> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut first: BTreeMap<(u64, u64), (u64, Program)> = BTreeMap::new();
    for pid in numbers.filter(|pid| is_wanted(*pid)) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if let Mapped::Statistics(entry) = statistics(&maps, number_inside(pid)) {
            let program = Program::of(pid, directory_of(&entry));
            let key = identity(&program.directory).unwrap_or_default();
            let kept = first.entry(key).or_insert_with(|| (entry.started, program.clone()));
            if entry.started < kept.0 {
                *kept = (entry.started, program);
            }
        }
    }
    first.into_values().map(|(_, program)| program).collect()
}

/// What a directory is, whatever path leads there.
fn identity(directory: &Path) -> Option<(u64, u64)> {
    fs::metadata(directory).map(|found| (found.dev(), found.ino())).ok()
}

fn directory_of(entry: &Entry) -> &Path {
    entry.path.parent().unwrap_or(Path::new("/"))
}

/// What of ours a process has mapped.
#[derive(Debug, PartialEq, Eq)]
enum Mapped {
    /// Its own statistics. (A process that reads others' statistics has those mapped as well.)
    Statistics(Entry),
    /// Its own statistics, in a file that was removed.
    Removed,
    /// The library alone.
    Library,
    Nothing,
}

/// Reads `/proc/PID/maps` of a process that has this number for itself.
fn statistics(maps: &str, pid: u32) -> Mapped {
    let mut found = Mapped::Nothing;
    for line in maps.lines() {
        let Some(path) = line.find('/').map(|at| &line[at..]) else { continue };
        let (path, is_removed) = match path.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (path, false),
        };
        match Entry::of(path.into(), Subject::Locks) {
            Some(entry) if entry.pid == pid && !is_removed => return Mapped::Statistics(entry),
            Some(entry) if entry.pid == pid => found = Mapped::Removed,
            _ if found == Mapped::Nothing && path.ends_with("/libmanycore_preload.so") => {
                found = Mapped::Library;
            }
            _ => {}
        }
    }
    found
}

/// The command line of a process as it was typed; otherwise its name.
pub fn command(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let words: Vec<&str> = words.split_terminator('\0').collect();
    let name = || fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    safe(&if words.is_empty() { name().trim_end().to_owned() } else { joined(words) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_the_maps() {
        let valid = "7f0-7f1 rw-s 0 00:1 7 /dev/shm/manycore-1/7-1.stats (deleted)\n";
        manycore_fuzz::texts("/proc/PID/maps", &[valid], |maps| drop(statistics(maps, 7)));
    }

    const LIBRARY: &str =
        "7f00-7f10 r-xp 00000000 08:01 12 /usr/lib/manycore/libmanycore_preload.so\n";

    #[test]
    fn statistics_are_told_by_their_file() {
        let line = |path: &str| format!("{LIBRARY}7f20-7f30 rw-s 00000000 00:1a 3     {path}\n");
        let of = |path: &str| statistics(&line(path), 12);
        let own = "/dev/shm/manycore-a b/12-345-0.stats";
        match of(own) {
            Mapped::Statistics(entry) => {
                assert_eq!(directory_of(&entry), Path::new("/dev/shm/manycore-a b"));
                assert_eq!(entry.started, 345);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(of(&format!("{own} (deleted)")), Mapped::Removed);
        // What `manycore profile` itself looks at.
        assert_eq!(of("/dev/shm/manycore-x/13-345-0.stats"), Mapped::Library);
        assert_eq!(
            statistics("5500-5600 r-xp 0 08:01 1 /bin/cat\n7f-80 rw-p 0 0:0 0\n", 12),
            Mapped::Nothing
        );
    }

    #[test]
    fn which_program_is_asked_for_if_there_are_several() {
        let program = |pid| Program::here("/x".into(), pid);
        assert_eq!(only(vec![program(1)]).unwrap().pid, 1);
        let why = only(vec![program(u32::MAX), program(u32::MAX - 1)]).unwrap_err().to_string();
        assert!(why.contains("2 programs") && why.ends_with("name one of them by --pid"), "{why}");
        let why = only(Vec::new()).unwrap_err().to_string();
        assert!(why.contains("manycore run --stats"), "{why}");
    }

    #[test]
    fn what_cannot_be_attached_to_says_why() {
        let why = |pid| of_process(pid).unwrap_err().to_string();
        assert!(why(u32::MAX).starts_with("there is no process"), "{}", why(u32::MAX));
        let own = why(std::process::id());
        assert!(
            own.contains("keeps no statistics of its locks") && own.contains("--stats"),
            "{own}"
        );
    }
}
