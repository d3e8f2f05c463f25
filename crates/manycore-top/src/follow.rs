//! Follows a running program: samples it periodically, for pictures of its locks' activity.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use manycore_profile::analyze::live::{Live, Picture, Snapshot, Span};
use manycore_profile::analyze::process::StatsFile;
use manycore_profile::clock::{Clock, ticks};
use manycore_stats::Mapping;

use crate::cpu::{CpuTimes, Seconds};
use crate::find::{Program, command};
use manycore_launch::failure::{Failure, Result};
use manycore_profile::record::directory::ended;
use manycore_profile::record::entry::{Entry, Subject, entries};
use manycore_profile::record::mapped_files::MappedFiles;
use manycore_profile::record::namespaces::Inner;

/// The most ended processes that the pictures include. They leave out earlier ones, and say so.
const ENDED_MAX: usize = 256;

/// A program that is followed.
pub struct Followed {
    program: Program,
    command: String,
    /// Whether no other program needs the files of processes that have ended.
    owns_files: bool,
    clock: Clock,
    /// In the order in which they were found.
    processes: Vec<Process>,
    /// Files of processes that are left out.
    left_out: HashSet<PathBuf>,
    live: Live,
    mapped: MappedFiles,
    /// When the last sample was.
    at: Option<Instant>,
    cpu: CpuTimes,
    /// CPU time until then.
    cpu_until: Seconds,
}

struct Process {
    entry: Entry,
    /// Its number in our namespace; `None` for a process that has ended before the number was
    /// known.
    number: Option<u32>,
    /// None when the process has ended.
    file: Option<StatsFile>,
    before: Option<Snapshot>,
    now: Option<Snapshot>,
}

/// What else is known of a program.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its command.
    pub command: String,
    /// The process that began first.
    pub pid: u32,
    /// The lock with which it runs; empty before it has started.
    pub lock: String,
    /// Processes that run and keep statistics.
    pub processes: usize,
    /// Their threads, those that use no lock too.
    pub threads: usize,
    /// CPUs of this machine.
    pub cpus: usize,
    /// Processes that have ended and are not in the pictures.
    pub left_out: usize,
    /// Whether it has ended.
    pub is_over: bool,
}

/// What a program did.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// The program.
    pub facts: Facts,
    /// Until now.
    pub total: Picture,
    /// Since the last sample; none at the first.
    pub interval: Option<Picture>,
    /// Whether the CPU time of the interval is missing: all processes ended in it, and their CPU
    /// time is not known.
    pub misses_cpu: bool,
}

impl Followed {
    /// Follows a program that runs.
    pub fn attach(program: Program) -> Result<Self> {
        let remedy = "run `manycore top` as the user who started the program, or as root";
        let found = entries(&program.directory, Subject::Locks).map_err(|error| {
            let place = program.directory.display();
            Failure::bad_input(format!("cannot read the statistics in {place}: {error}"), remedy)
        })?;
        let inner = Inner::look_for(&found);
        for entry in found.iter().filter(|entry| inner.number(entry) == Some(program.pid)) {
            StatsFile::<Mapping>::open(&entry.path).map_err(|error| {
                Failure::bad_input(format!("cannot read the statistics in {error}"), remedy)
            })?;
        }
        let command = command(program.pid);
        Ok(Self::new(program, command, false))
    }

    /// Follows a program from its start, and removes the files that its processes leave.
    pub fn start(program: Program, command: String) -> Self {
        Self::new(program, command, true)
    }

    fn new(program: Program, command: String, owns_files: bool) -> Self {
        Self {
            program,
            command,
            owns_files,
            clock: Clock::start(),
            processes: Vec::new(),
            left_out: HashSet::new(),
            live: Live::default(),
            mapped: MappedFiles::default(),
            at: None,
            cpu: CpuTimes::default(),
            cpu_until: (0.0, 0.0),
        }
    }

    /// The process that began first.
    pub fn pid(&self) -> u32 {
        self.program.pid
    }

    /// Whether all processes of the last sample have ended. There may be others, which the next
    /// sample finds.
    pub fn has_gone(&self) -> bool {
        self.open().next().is_some() && self.over().len() == self.open().count()
    }

    /// Samples the program. Its first process may have just ended, with this CPU time.
    pub fn sample(&mut self, used: Option<Seconds>) -> Pictures {
        self.find_processes();
        let over = self.over();
        let at = Instant::now();
        let mut pairs = Vec::new();
        for (number, one) in self.processes.iter_mut().enumerate() {
            let Some(file) = &one.file else { continue };
            let is_over = over.contains(&one.entry.path);
            one.before = one.now.take();
            one.now = Some(Snapshot::at(file.get(), (!is_over).then(ticks)));
            pairs.push(number);
            if is_over {
                one.file = None;
            }
        }
        let pictures = self.pictures(at, &pairs, used);
        self.leave_out(&over);
        pictures
    }

    /// Opens new files. If one cannot be read yet, tries again later.
    fn find_processes(&mut self) {
        // The directory is removed when the command that made it ends, but its mapped files still
        // exist.
        let found = entries(&self.program.directory, Subject::Locks).unwrap_or_default();
        self.mapped.sample(&found);
        let inner = Inner::look_for(&found);
        for entry in found {
            let is_known = self.left_out.contains(&entry.path)
                || self.processes.iter().any(|one| one.entry == entry);
            if !is_known && let Ok(Some(file)) = StatsFile::open(&entry.path) {
                let number = inner.number(&entry);
                let file = Some(file);
                self.processes.push(Process { entry, number, file, before: None, now: None });
            }
        }
    }

    /// Those of them that have ended.
    fn over(&self) -> HashSet<PathBuf> {
        let mut open: Vec<Entry> = self.open().map(|one| one.entry.clone()).collect();
        open.sort();
        ended(&open).map(|entry| entry.path.clone()).collect()
    }

    /// Processes that run, as far as is known.
    fn open(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|one| one.file.is_some())
    }

    fn pictures(&mut self, at: Instant, looked_at: &[usize], used: Option<Seconds>) -> Pictures {
        let rate = self.clock.rate();
        let pids: Vec<u32> = self.open().filter_map(|one| one.number).collect();
        // One that keeps no statistics does not count.
        let first = self.program.pid;
        let used = used.filter(|_| self.processes.iter().any(|one| one.number == Some(first)));
        let (user, kernel) = self.cpu.sample(&pids, used.map(|cpu| (first, cpu)));
        let all: Vec<&Snapshot> =
            self.processes.iter().filter_map(|one| one.now.as_ref()).collect();
        let begun = all.iter().map(|snapshot| snapshot.stats().started).min();
        let seconds = begun.map_or(0.0, |begun| rate.ns(ticks().saturating_sub(begun)) / 1e9);
        let total = self.live.until_now(&all, Span { seconds, user, kernel }, &rate);
        let since = self.at.map(|earlier| Span {
            seconds: (at - earlier).as_secs_f64(),
            user: user - self.cpu_until.0,
            kernel: kernel - self.cpu_until.1,
        });
        let interval = since.map(|span| {
            let of = |number: &usize| {
                let one = &self.processes[*number];
                Some((one.before.as_ref(), one.now.as_ref()?))
            };
            let pairs: Vec<_> = looked_at.iter().filter_map(of).collect();
            self.live.between(&pairs, span, &rate)
        });
        (self.at, self.cpu_until) = (Some(at), (user, kernel));
        let facts = self.facts();
        let misses_cpu = facts.is_over && used.is_none();
        Pictures { facts, total, interval, misses_cpu }
    }

    fn facts(&self) -> Facts {
        let threads =
            |pid: u32| fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let snapshots = || self.processes.iter().filter_map(|one| one.now.as_ref());
        Facts {
            command: self.command.clone(),
            pid: self.program.pid,
            lock: snapshots()
                .next()
                .map_or_else(String::new, |snapshot| snapshot.stats().lock.clone()),
            processes: self.open().count(),
            threads: self.open().filter_map(|one| one.number).map(threads).sum(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            left_out: self.left_out.len(),
            is_over: !self.processes.is_empty() && self.open().next().is_none(),
        }
    }

    /// Bounds what is kept of processes that have ended.
    fn leave_out(&mut self, over: &HashSet<PathBuf>) {
        if self.owns_files {
            // One that cannot be removed goes with the directory.
            over.iter().for_each(|path| drop(fs::remove_file(path)));
        }
        let ended = self.processes.iter().filter(|one| one.file.is_none()).count();
        let mut surplus = ended.saturating_sub(ENDED_MAX);
        let left_out = &mut self.left_out;
        self.processes.retain(|one| {
            let is_kept = one.file.is_some() || surplus == 0;
            if !is_kept {
                surplus -= 1;
                left_out.insert(one.entry.path.clone());
            }
            is_kept
        });
    }
}
