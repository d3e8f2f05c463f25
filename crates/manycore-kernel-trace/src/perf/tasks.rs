//! Tasks whose CPU time is sampled: their names, and the programs of their processes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use manycore_profile::analyze::cpu_samples::{Calls, Samples};

use crate::sleepers::stack_of;

/// The shortest time between two readings of a process' maps.
const AGE: Duration = Duration::from_secs(1);
/// With more tasks or processes than this, ended ones are forgotten: some ends have no record, and
/// zombies are still sampled afterwards.
const KNOWN_MAX: usize = 1 << 16;

/// What a record says.
#[derive(Debug, PartialEq)]
pub enum Event {
    Sample { process: u32, task: u32, weight: f32, kernel: Vec<u64>, user: Vec<u64> },
    Named { process: u32, task: u32, name: String, is_exec: bool },
    Forked { process: u32, maker: u32, task: u32, parent: u32 },
    Ended { process: u32, task: u32 },
}

/// Data about living tasks.
#[derive(Debug, Default)]
pub struct Tasks {
    /// Whose events count, where the whole machine's are seen.
    command: Option<Command>,
    names: HashMap<u32, String>,
    processes: HashMap<u32, Process>,
    /// The number of programs so far. A process that executes another program counts again.
    programs: u32,
    /// For each process, how often it executes another program in events that were not taken yet.
    execs: HashMap<u32, u32>,
}

/// The processes of a command.
#[derive(Debug, Default)]
struct Command {
    /// This process, which starts it.
    own: u32,
    /// Its children that have not become another program yet.
    starting: HashSet<u32>,
}

/// A process while it lives.
#[derive(Debug, Default)]
struct Process {
    /// The number of its tasks; none if it was there before the sampling began.
    tasks: Option<u32>,
    program: u32,
    /// When the maps of that program were read.
    read: Option<Instant>,
    /// Where its stack is, as they say.
    stack: Range<u64>,
    is_sampled: bool,
}

impl Process {
    /// A process executes another program: all its data become unknown, except for the number of
    /// its tasks.
    fn become_other(&mut self, number: u32, program: u32, samples: &mut Samples) {
        if self.is_sampled {
            samples.note_other_program(number);
        }
        *self = Self { tasks: self.tasks, program, ..Self::default() };
    }
}

impl Tasks {
    /// Selects, out of the whole machine's events, those of the processes that a process starts
    /// from now on.
    pub fn started_by(own: u32) -> Self {
        Self { command: Some(Command { own, ..Command::default() }), ..Self::default() }
    }

    /// Adds an event, this many milliseconds after the start. Events come in the order of their
    /// time.
    pub fn take(&mut self, event: Event, at: u32, samples: &mut Samples) {
        if !self.has(&event) {
            return;
        }
        match event {
            Event::Sample { process, task, weight, kernel, user } => {
                let program = self.look_at_maps(process, samples);
                let name = self.name(task);
                let calls = Calls { process, program, kernel, user };
                samples.take(task, name, at, weight, calls);
            }
            Event::Named { process, task, name, is_exec } => {
                if is_exec {
                    let program = self.new_program();
                    self.process(process).become_other(process, program, samples);
                    self.execs.entry(process).and_modify(|execs| *execs -= 1);
                }
                self.names.insert(task, name);
            }
            Event::Forked { process, maker, task, parent } => {
                if process == maker {
                    let known = self.process(process);
                    known.tasks = known.tasks.map(|tasks| tasks + 1);
                } else {
                    let program = self.new_program();
                    let new = Process { tasks: Some(1), program, ..Process::default() };
                    self.processes.insert(process, new);
                }
                let name = self.name(parent).to_owned();
                self.names.insert(task, name);
            }
            Event::Ended { process, task } => {
                self.names.remove(&task);
                // Its first thread says nothing of the others.
                if let Some(Process { tasks: Some(tasks), .. }) = self.processes.get_mut(&process) {
                    *tasks = tasks.saturating_sub(1);
                    if *tasks == 0 {
                        self.processes.remove(&process);
                    }
                }
            }
        }
    }

    /// Counts, before events are taken, how often processes execute another program in them.
    pub fn note_execs(&mut self, young: &[(u64, Event)]) {
        if self.names.len().max(self.processes.len()) > KNOWN_MAX {
            let lives = |task: &u32| Path::new("/proc").join(task.to_string()).exists();
            self.names.retain(|task, _| lives(task));
            self.processes.retain(|process, _| lives(process));
        }
        self.execs.clear();
        for (_, event) in young {
            if let Event::Named { process, is_exec: true, .. } = event {
                *self.execs.entry(*process).or_default() += 1;
            }
        }
    }

    /// Records were lost, so any task may have another name by now. A process may run another
    /// program, unless its stack starts at the same address. The maps of such a process are not
    /// read for a while, because the next samples may be of its earlier program.
    pub fn doubt(&mut self, samples: &mut Samples) {
        self.names.clear();
        for (number, process) in &mut self.processes {
            if !stack_of(*number).is_some_and(|start| process.stack.contains(&start)) {
                self.programs += 1;
                process.become_other(*number, self.programs, samples);
                process.read = Some(Instant::now());
            }
        }
    }

    /// Whether an event is of those that are meant.
    fn has(&mut self, event: &Event) -> bool {
        let Some(command) = &mut self.command else { return true };
        match *event {
            Event::Named { process, is_exec: true, .. } if command.starting.remove(&process) => {
                self.process(process).tasks = Some(1);
                true
            }
            Event::Forked { process, maker, .. } => {
                if maker == command.own && process != maker {
                    command.starting.insert(process);
                }
                // Whose number that was has ended.
                if process != maker {
                    self.processes.remove(&process);
                }
                self.processes.contains_key(&maker)
            }
            Event::Ended { process, .. } => {
                command.starting.remove(&process);
                self.processes.contains_key(&process)
            }
            Event::Sample { process, .. } | Event::Named { process, .. } => {
                self.processes.contains_key(&process)
            }
        }
    }

    fn new_program(&mut self) -> u32 {
        self.programs += 1;
        self.programs
    }

    fn process(&mut self, process: u32) -> &mut Process {
        self.processes.entry(process).or_insert_with(|| {
            self.programs += 1;
            Process { program: self.programs, ..Process::default() }
        })
    }

    /// The name of a task. A new task has its parent's name, and older tasks have no record. A task
    /// that is just ending has no name any more.
    fn name(&mut self, task: u32) -> &str {
        if !self.names.contains_key(&task)
            && let Ok(name) = fs::read_to_string(format!("/proc/{task}/comm"))
        {
            self.names.insert(task, name.trim_end().to_owned());
        }
        self.names.get(&task).map_or("", String::as_str)
    }

    /// The program of a process. Reads the process' maps if that was not done recently, unless the
    /// process runs another program by now, to which the maps would belong.
    fn look_at_maps(&mut self, process: u32, samples: &mut Samples) -> u32 {
        let is_other = self.execs.get(&process).is_some_and(|execs| *execs > 0);
        let known = self.process(process);
        known.is_sampled = true;
        let is_due = known.read.is_none_or(|read| read.elapsed() >= AGE);
        if is_due
            && !is_other
            && let Ok(maps) = fs::read(format!("/proc/{process}/maps"))
        {
            (known.read, known.stack) = (Some(Instant::now()), stack_in(&maps));
            samples.note_maps(process, known.program, &maps);
        }
        known.program
    }
}

/// The address range of a program's stack, according to its maps; empty if they do not have it.
fn stack_in(maps: &[u8]) -> Range<u64> {
    // It is among the last.
    let line = maps.rsplit(|byte| *byte == b'\n').find(|line| line.ends_with(b"[stack]"));
    let range = line.and_then(|line| {
        let (start, end) = str::from_utf8(line).ok()?.split_once(' ')?.0.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    });
    range.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use manycore_profile::profile::SampleSource;

    use super::*;

    #[test]
    fn whatever_is_in_the_maps() {
        let valid =
            b"7f0-7f1 r-xp 0 08:01 7 /lib/a\n7ffd000-7ffe000 rw-p 0 00:00 0          [stack]\n";
        manycore_fuzz::bytes("/proc/PID/maps", &[valid], |maps| {
            _ = stack_in(maps);
        });
    }

    fn named(task: u32, name: &str, is_exec: bool) -> Event {
        Event::Named { process: u32::MAX, task, name: name.to_owned(), is_exec }
    }

    fn sampled(process: u32) -> Event {
        Event::Sample { process, task: process, weight: 1.0, kernel: vec![], user: vec![] }
    }

    fn nothing() -> Samples {
        Samples::new(SampleSource::CpuClock, 100, false)
    }

    #[test]
    fn a_thread_has_the_name_of_its_maker_until_it_has_its_own() {
        let (mut tasks, mut samples) = (Tasks::default(), nothing());
        let mut take = |event| tasks.take(event, 0, &mut samples);
        let process = u32::MAX;
        take(named(process, "maker", true));
        take(Event::Forked { process, maker: process, task: process - 1, parent: process });
        take(named(process, "other", false));
        take(Event::Ended { process: 7, task: process - 2 });
        assert_eq!((tasks.names.len(), tasks.name(process - 1)), (2, "maker"));
        tasks.doubt(&mut nothing());
        assert_eq!(tasks.name(process - 1), "", "it may be called otherwise");
    }

    #[test]
    fn each_program_of_a_process_is_another_one() {
        let (mut tasks, mut samples) = (Tasks::default(), nothing());
        let process = u32::MAX;
        let mut seen = Vec::new();
        let mut program = |tasks: &mut Tasks| {
            let program = tasks.look_at_maps(process, &mut nothing());
            assert!(!seen.contains(&program), "{program} was there before: {seen:?}");
            seen.push(program);
        };
        let forked = |maker| Event::Forked { process, maker, task: process, parent: maker };
        let events = [forked(7), named(process, "a", true), named(process, "b", true), forked(7)];
        for event in events {
            tasks.take(event, 0, &mut samples);
            program(&mut tasks);
        }
        tasks.doubt(&mut nothing());
        program(&mut tasks);
        tasks.take(Event::Ended { process, task: process }, 0, &mut samples);
        assert!(tasks.processes.is_empty() && tasks.names.len() <= 1, "{tasks:?}");
    }

    /// The library's notes in the next program do not concern the samples of this one.
    #[test]
    fn a_program_that_was_sampled_and_replaced_is_told() {
        let (mut tasks, mut samples) = (Tasks::default(), nothing());
        let mut become_other = |tasks: &mut Tasks, is_sampled| {
            if is_sampled {
                tasks.take(sampled(u32::MAX), 0, &mut samples);
            }
            tasks.take(named(u32::MAX, "next", true), 0, &mut samples);
            samples.was_other_programs(u32::MAX)
        };
        assert_eq!([false, true].map(|is| become_other(&mut tasks, is)), [false, true]);
    }

    #[test]
    fn where_records_are_lost_a_program_is_the_same_if_its_stack_is() {
        let mut tasks = Tasks::default();
        let own = std::process::id();
        let first = tasks.look_at_maps(own, &mut nothing());
        tasks.doubt(&mut nothing());
        assert_eq!(tasks.look_at_maps(own, &mut nothing()), first);
        tasks.process(own).stack.start += 1 << 40;
        tasks.doubt(&mut nothing());
        assert_ne!(tasks.look_at_maps(own, &mut nothing()), first);
        assert!(tasks.processes[&own].stack.is_empty(), "no maps are read at once");
    }

    #[test]
    fn what_has_ended_without_a_record_is_forgotten() {
        let (mut tasks, mut samples) = (Tasks::default(), nothing());
        let own = std::process::id();
        for process in [own].into_iter().chain(u32::MAX - KNOWN_MAX as u32..u32::MAX) {
            tasks.take(sampled(process), 0, &mut samples);
        }
        assert!(tasks.processes.len() > KNOWN_MAX);
        tasks.note_execs(&[]);
        assert!(tasks.processes.into_keys().eq([own]) && tasks.names.into_keys().eq([own]));
    }

    /// Whether events are of the command that process 7 has started.
    #[test]
    fn of_everybody_those_that_the_command_has_made_are_its() {
        let (mut tasks, mut samples) = (Tasks::started_by(7), nothing());
        let mut has = |event: Event| {
            let has = tasks.has(&event);
            tasks.take(event, 0, &mut samples);
            has
        };
        let forked =
            |process, maker| Event::Forked { process, maker, task: process, parent: maker };
        let becomes =
            |process| Event::Named { process, task: process, name: "it".to_owned(), is_exec: true };
        let ended = |process, task| Event::Ended { process, task };
        // Our own thread and a child of ours, which counts as ours until it executes another
        // program.
        for other in [forked(7, 7), forked(8, 7), sampled(8), sampled(7), forked(5, 4), becomes(5)]
        {
            let said = format!("{other:?}");
            assert!(!has(other), "{said}");
        }
        let thread = Event::Forked { process: 8, maker: 8, task: 10, parent: 8 };
        for its in [becomes(8), sampled(8), forked(9, 8), sampled(9), thread, ended(8, 8)] {
            let said = format!("{its:?}");
            assert!(has(its), "{said}");
        }
        // The number of a task whose end was not recorded is given to another task.
        assert!(!has(forked(9, 4)) && !has(sampled(9)) && has(forked(9, 8)));
        // Its first thread has ended, and the other one has not.
        assert!(has(sampled(8)) && has(ended(8, 10)));
        assert!(!has(sampled(8)) && !has(ended(8, 8)) && has(sampled(9)));
    }
}
