//! Polls the processes of a program while it runs: the times of events, and its threads' names and
//! CPU time.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::analyze::assemble::Watched;
use crate::analyze::groups::overflow_processes::Numbers;
use crate::analyze::process::StatsFile;
use crate::analyze::process::{Key, ProcessStats, key};
use crate::analyze::run_analysis::threads::{Seen, SeenThreads};
use crate::analyze::run_analysis::timeline::TimelineBuilder;
use crate::clock::{Clock, ticks};
use manycore_stats::Mapping;
use rustix::param::clock_ticks_per_second;

use super::entry::{Entry, Files};
use super::kernel_side::Beside;

/// Polling all threads takes at most this fraction (1/N) of the time.
const THREADS_SHARE: u32 = 20;
/// This many threads are remembered.
const THREADS_MAX: usize = 16_384;

/// What has been seen.
pub struct Poller {
    clock: Clock,
    recorder: TimelineBuilder,
    open: HashMap<PathBuf, StatsFile>,
    /// Files of ended processes that were read to the end.
    done: HashSet<PathBuf>,
    /// Those of them in which there is nothing.
    empty: HashSet<PathBuf>,
    threads: SeenThreads,
    /// When threads may be looked at again.
    threads_next: Instant,
}

impl Poller {
    /// Creates a poller that has seen nothing, for a run that begins with the clock and is sampled
    /// once in `every`.
    pub fn new(clock: Clock, every: Duration) -> Self {
        Self {
            clock,
            recorder: TimelineBuilder::new(every.as_secs_f64()),
            open: HashMap::new(),
            done: HashSet::new(),
            empty: HashSet::new(),
            threads: HashMap::new(),
            threads_next: Instant::now(),
        }
    }

    /// Polls. `cpu` is the CPU time of all processes until now, in seconds: outside of the kernel,
    /// and in the kernel.
    pub fn sample(&mut self, files: &Files, cpu: (f64, f64)) {
        let Files { entries, ended } = files;
        for Entry { path, .. } in entries {
            if self.done.contains(path) || self.open.contains_key(path) {
                continue;
            }
            match StatsFile::open(path) {
                Ok(Some(file)) => drop(self.open.insert(path.clone(), file)),
                Ok(None) if ended.contains(path) => {
                    self.done.insert(path.clone());
                    self.empty.insert(path.clone());
                }
                // It may be initialised later; or it is not a statistics file, which is reported at
                // the end.
                Ok(None) | Err(_) => {}
            }
        }
        let mappings: Vec<(Key, &Mapping)> =
            self.open.values().map(|file| (key(file.get()), file.get())).collect();
        let at = self.clock.elapsed().as_secs_f64();
        self.recorder.sample(at, cpu, ticks(), mappings);
        for path in ended {
            if self.open.remove(path).is_some() {
                self.done.insert(path.clone());
            }
        }
        // Files that are gone have been read to their end by another reader, and removed.
        let there: HashSet<&PathBuf> = entries.iter().map(|entry| &entry.path).collect();
        self.open.retain(|path, _| there.contains(path));
        self.done.retain(|path| there.contains(path));
        self.empty.retain(|path| there.contains(path));
        self.look_at_threads(entries);
    }

    /// Makes the kernel's side read the new data, and notes the totals of places where threads wait
    /// for futexes of their own.
    pub fn look_beside(&mut self, beside: &mut Beside) {
        beside.sample();
        if let Some(counts) = beside.count_futexes() {
            self.recorder.look_at_futexes(self.clock.elapsed().as_secs_f64(), counts);
        }
    }

    fn look_at_threads(&mut self, entries: &[Entry]) {
        let begun = Instant::now();
        if begun < self.threads_next {
            return;
        }
        for entry in entries.iter().filter(|entry| self.open.contains_key(&entry.path)) {
            let Some(pid) = entry.own_pid() else { continue };
            for (thread, seen) in threads(pid) {
                if self.threads.len() < THREADS_MAX || self.threads.contains_key(&(pid, thread)) {
                    self.threads.insert((pid, thread), seen);
                }
            }
        }
        self.threads_next = Instant::now() + begun.elapsed() * (THREADS_SHARE - 1);
    }

    /// Whether this is the file of a process that has ended and has noted nothing.
    pub fn found_empty(&self, path: &Path) -> bool {
        self.empty.contains(path)
    }

    /// A process has ended and becomes one of many: its records are locks with these numbers.
    pub fn sum_up(&mut self, one: &ProcessStats, numbers: &Numbers) {
        self.recorder.sum_up(one, numbers);
    }

    /// Ends the run after this many seconds, with this CPU time, these statistics, and the other
    /// observations.
    pub fn end(
        mut self,
        wall: f64,
        cpu: (f64, f64),
        stats: &[ProcessStats],
        beside: Watched,
    ) -> Watched {
        self.recorder.end(wall, cpu, stats, &beside.futexes);
        Watched { timeline: Some(self.recorder), threads: self.threads, ..beside }
    }
}

/// The threads that a process has now.
fn threads(pid: u32) -> Vec<(u32, Seen)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| {
            let stat = fs::read(task.path().join("stat")).ok()?;
            let seen = Seen {
                scheduled: fs::read_to_string(task.path().join("schedstat"))
                    .ok()
                    .and_then(|text| scheduled(&text)),
                ..seen(&String::from_utf8_lossy(&stat))?
            };
            Some((task.file_name().to_str()?.parse().ok()?, seen))
        })
        .collect()
}

/// `number (name) state ...`. The name can contain anything, so fields are counted from the one
/// after it, the third.
fn seen(stat: &str) -> Option<Seen> {
    let (head, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let second = clock_ticks_per_second() as f64;
    let time = |number: usize| Some(fields.get(number - 3)?.parse::<f64>().ok()? / second);
    let name = head.split_once('(')?.1.to_owned();
    Some(Seen { name, user: time(14)?, kernel: time(15)?, scheduled: None })
}

/// Nanoseconds on a CPU, then nanoseconds ready but without a CPU, then the number of times on a
/// CPU. A kernel that does not count gives zeros.
fn scheduled(text: &str) -> Option<(f64, f64)> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (ran, ready) = (numbers.next()??, numbers.next()??);
    (ran > 0).then_some((ran as f64 / 1e9, ready as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_the_file() {
        let valid = "12 (a) S 1 2 3 4 5 6 7 8 9 10 300 200 0 0";
        manycore_fuzz::texts("/proc/PID/stat", &[valid], |text| drop(seen(text)));
    }

    #[test]
    fn a_threads_name_may_hold_anything() {
        let stat = "12 (a) (b) S 1 2 3 4 5 6 7 8 9 10 300 200 0 0";
        let seen = seen(stat).unwrap();
        let second = clock_ticks_per_second() as f64;
        assert_eq!(
            (seen.name.as_str(), seen.user * second, seen.kernel * second),
            ("a) (b", 300.0, 200.0)
        );
    }

    #[test]
    fn the_scheduler_says_who_waited_for_a_cpu() {
        assert_eq!(scheduled("2000000000 500000000 7\n"), Some((2.0, 0.5)));
        assert_eq!((scheduled("0 0 0\n"), scheduled("5"), scheduled("")), (None, None, None));
    }

    #[test]
    fn this_processs_threads_are_seen() {
        let id = std::process::id();
        assert!(threads(id).iter().any(|(thread, _)| *thread == id));
        assert!(threads(u32::MAX).is_empty());
    }
}
