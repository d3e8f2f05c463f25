//! The processes of a program, as far as they can be seen by sampling.
//!
//! Some processes leave no file. So the tree of processes below this command is sampled while the
//! program runs. A process that starts and ends between two samples is missed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::profile::Outsider;
use crate::safe;
use rustix::param::clock_ticks_per_second;

use manycore_launch::target;

/// How often a program has to be seen before it is known whether it has the library.
const SAMPLES: u32 = 2;

/// What has been seen.
#[derive(Debug, Default)]
pub struct ProcessTree {
    seen: BTreeMap<u32, Seen>,
    own_program: PathBuf,
    library: Option<PathBuf>,
}

#[derive(Debug)]
struct Seen {
    parent: u32,
    /// Most processes run two programs: a copy of their parent, and the one that the copy executes.
    programs: Vec<Program>,
}

#[derive(Debug)]
struct Program {
    path: PathBuf,
    /// Why a library cannot be preloaded.
    obstacle: Option<String>,
    samples: u32,
    /// Whether the library is in it: then it leaves no statistics only because it has counted
    /// nothing.
    is_interposed: bool,
}

/// A process, and the process that started or adopted it.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
}

impl ProcessTree {
    /// Nothing seen, of processes that `library` is preloaded into.
    pub fn new(library: Option<&Path>) -> Self {
        let own_program = fs::read_link("/proc/self/exe").unwrap_or_default();
        Self { seen: BTreeMap::new(), own_program, library: library.map(Path::to_owned) }
    }

    /// Polls all processes below this one; returns them.
    pub fn sample(&mut self) -> Vec<Child> {
        let mut below = children(std::process::id());
        let mut next = 0;
        while let Some(child) = below.get(next).copied() {
            self.note(child);
            below.extend(children(child.pid));
            next += 1;
        }
        below
    }

    fn note(&mut self, child: Child) {
        let link = PathBuf::from(format!("/proc/{}/exe", child.pid));
        // The program of another user, or of a process that has just ended, cannot be seen.
        let Ok(path) = fs::read_link(&link) else { return };
        // A child that has not yet become the program is a copy of this command.
        if path == self.own_program {
            return;
        }
        let seen = self
            .seen
            .entry(child.pid)
            .or_insert_with(|| Seen { parent: child.parent, programs: Vec::new() });
        match seen.programs.last_mut() {
            Some(last) if last.path == path => {
                last.samples += 1;
                // By the second sample the dynamic linker has usually done its work.
                if last.samples >= SAMPLES && !last.is_interposed && last.obstacle.is_none() {
                    last.is_interposed =
                        self.library.as_deref().is_some_and(|library| maps(child.pid, library));
                }
            }
            _ => {
                let obstacle = target::obstacle(&link);
                seen.programs.push(Program { path, obstacle, samples: 1, is_interposed: false });
            }
        }
    }

    /// The processes that were seen and left no statistics, with the reason. `left_by` returns
    /// whether a process left statistics while it ran a given program.
    pub fn outsiders(&self, left_by: impl Fn(u32, &Path) -> bool) -> Vec<Outsider> {
        let programs = self
            .seen
            .iter()
            .flat_map(|(pid, seen)| seen.programs.iter().map(move |program| (*pid, seen, program)));
        let missing = programs
            .filter(|(pid, _, program)| !program.is_interposed && !left_by(*pid, &program.path));
        missing
            .filter_map(|(pid, seen, program)| {
                let why = match &program.obstacle {
                    Some(obstacle) => obstacle.clone(),
                    // It may have been seen just before the library started, and never again.
                    None if program.samples < SAMPLES => return None,
                    None => {
                        "the library was not loaded into it: its environment was cleared".to_owned()
                    }
                };
                let program = safe(&program.path.to_string_lossy());
                Some(Outsider { pid, parent: seen.parent, program, why })
            })
            .collect()
    }
}

/// Whether a process has mapped the file; false if this process may not inspect it.
fn maps(pid: u32, file: &Path) -> bool {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let lines = maps.split(|byte| *byte == b'\n');
    // A file that has been replaced since is still there.
    let mut lines = lines.map(|line| line.strip_suffix(b" (deleted)").unwrap_or(line));
    lines.any(|line| line.ends_with(file.as_os_str().as_bytes()))
}

fn children(parent: u32) -> Vec<Child> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<u32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<_>>())
        .collect();
    numbers.into_iter().map(|pid| Child { pid, parent }).collect()
}

/// CPU time of a process, in seconds: in user space and in the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Its parent.
    pub parent: u32,
    /// Its own CPU time, and that of the children for which it has waited.
    pub all: (f64, f64),
    /// Theirs alone.
    pub of_children: (f64, f64),
}

impl Usage {
    /// The usage of a process that exists.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, can contain anything, so fields are counted from the one after
        // it, the third.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let second = clock_ticks_per_second() as f64;
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            all: ((field(14)? + field(16)?) / second, (field(15)? + field(17)?) / second),
            of_children: (field(16)? / second, field(17)? / second),
        })
    }
}

/// CPU time of a process and of the children that it has waited for, in seconds: in user space and
/// in the kernel.
pub fn cpu_time(pid: u32) -> Option<(f64, f64)> {
    Usage::of(pid).map(|usage| usage.all)
}

/// CPU time of a process alone, in seconds: in user space and in the kernel.
pub fn own_cpu_time(pid: u32) -> Option<(f64, f64)> {
    let Usage { all, of_children, .. } = Usage::of(pid)?;
    Some((all.0 - of_children.0, all.1 - of_children.1))
}

/// Whether a process has ended and waits to be reaped.
pub fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_is_seen() {
        let own = std::env::current_exe().unwrap();
        assert!(maps(std::process::id(), &own));
        assert!(!maps(std::process::id(), Path::new("/nowhere")));
    }

    #[test]
    fn the_name_of_a_file_is_text() {
        let program = Program {
            path: "/tmp/\u{1b}[2J\u{9b}x".into(),
            obstacle: Some("it is static".into()),
            samples: 1,
            is_interposed: false,
        };
        let seen = BTreeMap::from([(7, Seen { parent: 1, programs: vec![program] })]);
        let tree = ProcessTree { seen, ..ProcessTree::default() };
        let [outsider] = &tree.outsiders(|_, _| false)[..] else { panic!("{tree:?}") };
        assert_eq!(outsider.program, "/tmp/\u{fffd}[2J\u{fffd}x");
    }

    #[test]
    fn a_process_has_its_own_time_and_that_of_its_children() {
        // A child that computes until it is killed, and for which its parent waits; the parent
        // itself computes nothing.
        let script =
            "sh -c 'while :; do :; done' & sleep 0.3; kill $!; wait $!; echo; exec sleep 10";
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let (own, all) = (own_cpu_time(child.id()).unwrap(), cpu_time(child.id()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(all.0 > own.0 && all.1 >= own.1, "{own:?} of {all:?}");
        assert!(own_cpu_time(child.id()).is_none());
    }

    #[test]
    fn children_and_their_time_are_seen() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().unwrap();
        let found = children(std::process::id());
        assert!(found.iter().any(|one| one.pid == child.id()), "{found:?}");
        assert_eq!(Usage::of(child.id()).unwrap().parent, std::process::id());
        assert!(!is_zombie(child.id()));
        child.kill().unwrap();
        while !is_zombie(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_zombie(child.id()) && cpu_time(child.id()).is_none());
    }
}
