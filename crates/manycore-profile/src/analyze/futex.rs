//! Waits for words of a program's own, by the futex call: locks that are inlined, which no library
//! can be put under.
//!
//! The kernel sees the waits, but not operations without a wait: such a lock has no acquisitions
//! and no holds. Its name comes from the variable that contains it, or otherwise from the place
//! where threads wait for it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::analyze::names::files;
use crate::analyze::names::modules::Modules;

/// The waits of one process' threads for one word at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FutexWaits {
    /// The process.
    pub process: u32,
    /// The number of the program that the process ran. It increases with each exec.
    pub program: u32,
    /// The number of the place in each [`Count`] of it; `None` if there were too many places.
    pub number: Option<u32>,
    /// The word's address.
    pub word: u64,
    /// Whether the word's value says that an event is waited for, and not a lock.
    pub is_event: bool,
    /// The calls, innermost first.
    pub calls: Vec<u64>,
    /// How many.
    pub waits: u64,
    /// How long, in nanoseconds.
    pub total_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
    /// Durations in nanoseconds, each with the number of waits of about that duration.
    pub times: Vec<(u64, u32)>,
}

/// The totals of one place at a moment. Of waits that were under way then, only the time is
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Which place: that of the [`FutexWaits`] of this number.
    pub number: u32,
    /// How many waits had ended.
    pub waits: u64,
    /// How long threads had waited, in nanoseconds.
    pub total_ns: u64,
}

/// All such waits of some processes.
#[derive(Debug, Default)]
pub struct Futexes {
    /// In no order.
    pub waits: Vec<FutexWaits>,
    /// The preloaded library, which counts the waits of its own code itself. `None` for a process
    /// that was already running.
    pub library: Option<PathBuf>,
    /// By process, and which of its programs.
    maps: HashMap<(u32, u32), Modules>,
}

impl Futexes {
    /// Notes the files that a process has mapped while it runs this program, as `/proc/PID/maps`
    /// lists them.
    pub fn note_maps(&mut self, process: u32, program: u32, list: &[u8]) {
        let modules = Modules::of_maps((process, 0), list);
        // A process that is just ending has none any more.
        if modules.program().is_some() {
            files::see_mapped(process, &modules);
            self.maps.insert((process, program), modules);
        }
    }

    /// Whether they were noted.
    pub fn has_maps(&self, process: u32, program: u32) -> bool {
        self.maps.contains_key(&(process, program))
    }

    /// The processes that have waited.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        self.waits.iter().map(|waits| waits.process).collect()
    }

    /// What all places have come to in the end.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Count> {
        let count = |one: &FutexWaits| {
            Some(Count { number: one.number?, waits: one.waits, total_ns: one.total_ns })
        };
        self.waits.iter().filter_map(count)
    }

    /// Whether the library itself waits: the system call is made in its code, or in a function
    /// without a frame that its code has called, such as libc's `syscall`. Neither needs unwinding.
    /// The file is compared by name, since the program may have another root.
    pub(crate) fn are_of_the_library(&self, waits: &FutexWaits, modules: &Modules) -> bool {
        let Some(library) = self.library.as_deref().and_then(Path::file_name) else { return false };
        waits.calls.iter().take(2).any(|call| modules.is_in(*call, library))
    }

    /// The files of a process when it waited: the noted ones, or `left` for the last of its
    /// programs.
    pub(crate) fn modules<'a>(
        &'a self,
        waits: &FutexWaits,
        left: Option<&'a Modules>,
    ) -> Option<&'a Modules> {
        let FutexWaits { process, program, .. } = *waits;
        let is_replaced = || {
            let mut programs = self.waits.iter().map(|other| (other.process, other.program));
            programs.any(|other| other.0 == process && other.1 > program)
        };
        self.maps.get(&(process, program)).or_else(|| left.filter(|_| !is_replaced()))
    }
}
