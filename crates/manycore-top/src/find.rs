//! Programs that keep statistics while they run.
//!
//! A process that keeps any has its file mapped, and the kernel tells where that is. (The
//! environment does not: programs write over it.) What one command has started writes into one
//! directory, and is one program.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use manycore_profile::command::joined;
use manycore_profile::safe;

use manycore_launch::failure::{Failure, Result};
use manycore_profile::record::entry::{Entry, Subject};

/// How a program comes to keep statistics.
const REMEDY: &str = "programs do that were started by `manycore profile -- CMD` or `manycore run --stats -- CMD`; \
                      `manycore top -- CMD` starts one";

/// A program that keeps statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where its processes write them.
    pub directory: PathBuf,
    /// The process that began first.
    pub pid: u32,
}

/// The program of a process, or the only one that there is.
pub fn program(pid: Option<u32>) -> Result<Program> {
    match pid {
        Some(pid) => of_process(pid),
        None => only(all()),
    }
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
    match statistics(&maps, pid) {
        Mapped::Statistics(entry) => {
            let directory = directory_of(&entry);
            let all = all().into_iter().find(|program| program.directory == directory);
            Ok(all.unwrap_or(Program { directory, pid }))
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

/// All programs that keep statistics and that we may look at.
fn all() -> Vec<Program> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut first: BTreeMap<PathBuf, Entry> = BTreeMap::new();
    for pid in numbers {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if let Mapped::Statistics(entry) = statistics(&maps, pid) {
            let kept = first.entry(directory_of(&entry)).or_insert_with(|| entry.clone());
            if entry.started < kept.started {
                *kept = entry;
            }
        }
    }
    let program = |(directory, entry): (PathBuf, Entry)| Program { directory, pid: entry.pid };
    first.into_iter().map(program).collect()
}

fn directory_of(entry: &Entry) -> PathBuf {
    entry.path.parent().unwrap_or(Path::new("/")).to_owned()
}

/// What of ours a process has mapped.
#[derive(Debug, PartialEq, Eq)]
enum Mapped {
    /// Its own statistics. (Who reads them has them mapped, too, but they are another's.)
    Statistics(Entry),
    /// Its own statistics, in a file that was removed.
    Removed,
    /// The library alone.
    Library,
    Nothing,
}

/// Reads `/proc/PID/maps`.
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

/// The command of a process, as a person would type it, or else its name.
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
        let program = |pid| Program { directory: "/x".into(), pid };
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
