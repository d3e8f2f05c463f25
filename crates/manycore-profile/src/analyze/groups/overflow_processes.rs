//! Processes beyond those that are kept one by one: their locks, added up as they end.
//!
//! A program may make processes for as long as it runs. The data that are kept about these do not
//! grow with their number, except for a number and a name of each.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::analyze::groups::Groups;
use crate::analyze::groups::OTHERS;
use crate::analyze::groups::name::Identity;
use crate::analyze::names::symbols::Symbols;
use crate::analyze::process::ProcessStats;
use crate::profile::Sampling;

/// Processes that have ended, as one.
#[derive(Default)]
pub struct Others {
    pub(crate) symbols: Symbols,
    pub(crate) groups: Groups,
    /// Their locks, with a number each.
    numbers: HashMap<Identity, u32>,
    /// For each process number and program, the time at which the last one began, in ticks.
    /// Programs are numbers as well.
    left: BTreeMap<(u32, u32), u64>,
    programs: HashMap<PathBuf, u32>,
    /// Those that used a lock.
    pub(crate) count: u64,
    pub(crate) started: Option<u64>,
    pub(crate) threads: u32,
    pub(crate) unrecorded: u64,
    pub(crate) sampling: Sampling,
}

impl fmt::Debug for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Others").field("count", &self.count).finish_non_exhaustive()
    }
}

/// For each record of a process, the number of the overflow lock that it belongs to.
pub type Numbers = HashMap<u32, u32>;

impl Others {
    /// Adds a process that has ended.
    pub fn add(&mut self, one: &ProcessStats) -> Numbers {
        if let Some(program) = one.program_path() {
            let next = self.programs.len() as u32;
            let program = *self.programs.entry(program).or_insert(next);
            let last = self.left.entry((one.pid, program)).or_default();
            *last = one.started.max(*last);
        }
        if one.recorded.is_empty() {
            return Numbers::new();
        }
        let mut numbers = Numbers::new();
        let known = &mut self.numbers;
        let groups = Groups::of(one, &mut self.symbols, |record, identity| {
            let next = known.len() as u32;
            numbers.insert(record, *known.entry(identity).or_insert(next));
        });
        self.groups.add(groups);
        self.count += 1;
        self.started = Some(self.started.map_or(one.started, |first| first.min(one.started)));
        self.threads = self.threads.saturating_add(one.threads);
        self.unrecorded += one.unrecorded;
        self.sampling = self.sampling.and(one.sampling);
        numbers
    }

    /// Their locks, as records of one process.
    pub(crate) fn records(&self) -> HashMap<(usize, u32), Identity> {
        let numbers = self.numbers.iter();
        numbers.map(|(identity, number)| ((OTHERS, *number), *identity)).collect()
    }

    /// Whether a process is among them that left statistics while it was this program.
    pub fn has(&self, pid: u32, program: &Path) -> bool {
        self.programs.get(program).is_some_and(|program| self.left.contains_key(&(pid, *program)))
    }

    /// Whether a process became a program that is among them after it had begun as another one.
    pub(crate) fn have_replaced(&self, pid: u32, started: u64) -> bool {
        self.left.range((pid, 0)..=(pid, u32::MAX)).any(|(_, later)| *later > started)
    }
}
