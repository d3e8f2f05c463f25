//! Where the CPU time went, from stacks that were sampled while threads were on a CPU.
//!
//! Each sample is kept, in bounded memory: when there are too many, every second one is dropped,
//! and only every second new one is taken from then on. A thread's activity is derived from its
//! innermost calls (`divide`, `spinning`), after the run, when the calls have names.

mod divide;
mod spinning;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use crate::analyze::names::files;
use crate::analyze::names::modules::Modules;
use crate::profile::{Frame, SampleSource};

/// The most samples. Beyond that every second one is dropped.
const SAMPLES_MAX: usize = 1 << 20;
/// The most stacks. Beyond that only the innermost calls of new stacks are kept, and then none.
const STACKS_MAX: usize = 16_384;
const CUT_STACKS_MAX: usize = 131_072;
/// The number of calls in the kernel, and of calls in the program, that are then kept.
const CUT: usize = 4;
/// The most programs whose maps are kept: a few kilobytes each.
const MAPS_MAX: usize = 8192;
/// More threads are one.
const THREADS_MAX: usize = 16_384;

/// What was sampled.
#[derive(Debug)]
pub struct Samples {
    /// By what.
    pub source: SampleSource,
    /// As of `CpuSamples`.
    pub rate: u32,
    /// As of `CpuSamples`.
    pub kernel_permitted: bool,
    /// As of `CpuSamples`.
    pub lost: u64,
    /// The start of the run, in seconds since the sampling began.
    pub start: f64,
    /// The kernel's calls, by address; `None` if the kernel does not tell their names.
    pub kernel: HashMap<u64, Frame>,
    /// The preloaded library, which measures its own spinning itself.
    pub library: Option<PathBuf>,
    taken: u64,
    /// One of this many samples is kept.
    period: u64,
    kept: Vec<Kept>,
    most: usize,
    stacks: HashMap<Calls, u32>,
    threads: HashMap<(u32, u32), (u32, String)>,
    maps: HashMap<(u32, u32), Modules>,
    /// Processes that were sampled, and then became other programs.
    replaced: HashSet<u32>,
    /// Whether there was no room for the maps of some.
    has_unmapped: bool,
}

/// A sample that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    stack: u32,
    thread: u32,
    /// In milliseconds.
    at: u32,
    weight: f32,
}

/// The calls in which a thread of a process was, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Calls {
    /// The process.
    pub process: u32,
    /// Which of the programs that it has been.
    pub program: u32,
    /// Calls in the kernel.
    pub kernel: Vec<u64>,
    /// The program's.
    pub user: Vec<u64>,
}

impl Samples {
    /// None yet.
    pub fn new(source: SampleSource, rate: u32, kernel_permitted: bool) -> Self {
        Self {
            source,
            rate,
            kernel_permitted,
            lost: 0,
            start: 0.0,
            kernel: HashMap::new(),
            library: None,
            taken: 0,
            period: 1,
            kept: Vec::new(),
            most: SAMPLES_MAX,
            stacks: HashMap::new(),
            threads: HashMap::new(),
            maps: HashMap::new(),
            replaced: HashSet::new(),
            has_unmapped: false,
        }
    }

    /// Adds a sample of a thread, this many milliseconds after the sampling began. `weight` is the
    /// amount that the sample represents, in any unit.
    pub fn take(&mut self, thread: u32, name: &str, at: u32, weight: f32, calls: Calls) {
        self.taken += 1;
        if !self.taken.is_multiple_of(self.period) {
            return;
        }
        let thread = self.thread((calls.process, thread), name);
        let Some(stack) = self.stack(calls) else {
            self.lost += 1;
            return;
        };
        if self.kept.len() >= self.most {
            let mut is_kept = false;
            self.kept.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.period *= 2;
        }
        self.kept.push(Kept { stack, thread, at, weight });
    }

    /// Notes the files that a process has mapped while it runs a program, as `/proc/PID/maps` lists
    /// them.
    pub fn note_maps(&mut self, process: u32, program: u32, list: &[u8]) {
        if self.maps.len() >= MAPS_MAX && !self.maps.contains_key(&(process, program)) {
            self.has_unmapped = true;
            return;
        }
        let modules = Modules::of_maps((process, 0), list);
        // A process that is just ending has none any more.
        if modules.program().is_some() {
            files::see_mapped(process, &modules);
            self.maps.insert((process, program), modules);
        }
    }

    /// A process that was sampled has become another program.
    pub fn note_other_program(&mut self, process: u32) {
        self.replaced.insert(process);
    }

    /// Whether it has.
    pub fn was_other_programs(&self, process: u32) -> bool {
        self.replaced.contains(&process)
    }

    /// The kernel's calls that were seen, each once.
    pub fn kernel_calls(&self) -> Vec<u64> {
        let mut calls: Vec<u64> =
            self.stacks.keys().flat_map(|calls| &calls.kernel).copied().collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    }

    /// A number for a thread: 0 for all threads beyond the limit.
    fn thread(&mut self, key: (u32, u32), name: &str) -> u32 {
        let next = self.threads.len();
        if next >= THREADS_MAX && !self.threads.contains_key(&key) {
            return 0;
        }
        let (number, known) = self.threads.entry(key).or_insert((next as u32 + 1, String::new()));
        if known != name && !name.is_empty() {
            name.clone_into(known);
        }
        *number
    }

    fn stack(&mut self, mut calls: Calls) -> Option<u32> {
        let next = self.stacks.len();
        if next >= STACKS_MAX && !self.stacks.contains_key(&calls) {
            calls.kernel.truncate(CUT);
            calls.user.truncate(CUT);
        }
        if next >= CUT_STACKS_MAX && !self.stacks.contains_key(&calls) {
            return None;
        }
        Some(*self.stacks.entry(calls).or_insert(next as u32))
    }
}
