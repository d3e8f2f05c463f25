//! What one process left behind: everything that is read from its file, before names are looked up.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::decode::{NotedStack, Recorded};
use self::noted::Noted;
use crate::analyze::names::files;
use crate::analyze::names::listed::Listed;
use crate::analyze::names::modules::{Modules, NOW};
use crate::analyze::names::symbols::{Calls, name_of};
use crate::profile::Sampling;
use manycore_stats::{BY_STACK, Kind, Mapping, SLABS, Slab};

pub(super) mod decode;
mod handovers;
pub(super) mod noted;
pub mod stats_file;

pub use crate::analyze::names::modules::{Key, key};

/// A process' statistics.
#[derive(Debug)]
pub struct ProcessStats {
    /// Its number.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// When its statistics began, in ticks.
    pub started: u64,
    /// Whether it ran its exit handlers.
    pub exited: bool,
    /// The lock algorithm that it ran with.
    pub lock: String,
    /// How often it measured what it did not count.
    pub sampling: Sampling,
    /// Threads that used locks.
    pub threads: u32,
    /// Objects that found no record.
    pub unrecorded: u64,
    /// Children that it forked and that could not make statistics.
    pub uncounted: u32,
    /// Nanoseconds from one time to the next, where it may not read the time stamp counter; 0 if it
    /// may.
    pub clock_step_ns: u32,
    /// The name that the kernel gave the program when it was started; nothing of a forked process.
    pub started_as: String,
    pub(crate) modules: Arc<Modules>,
    pub(crate) recorded: Vec<Recorded>,
    /// Those that are referred to, by number.
    pub(crate) stacks: Arc<HashMap<u32, NotedStack>>,
    pub(crate) noted: Noted,
}

impl ProcessStats {
    /// Adds up what the process has counted until now.
    pub fn read(mapping: &Mapping) -> Self {
        let header = &mapping.header;
        // Relaxed, all: what is read here was written before the header's magic, or is a counter.
        let number = |word: &std::sync::atomic::AtomicU32| word.load(Ordering::Relaxed);
        // Relaxed: as above.
        let long = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Relaxed);
        let (mut recorded, noted) = (decode::read(mapping), noted::read(mapping));
        let of_locks = recorded.iter().flat_map(|one| {
            let waiters = one.waiters.iter().map(|place| place.stack);
            waiters.chain([one.stack])
        });
        let of_waits = noted.blocked.iter().flat_map(|one| {
            let holder = (one.holder & BY_STACK != 0).then_some(one.holder as u32);
            holder.into_iter().chain([one.stack])
        });
        let of_orders = noted.orders.iter().map(|one| one.stack);
        // Behind what refers to them, so that all that is referred to is there.
        let stacks = decode::stacks(mapping, of_locks.chain(of_waits).chain(of_orders)).into();
        // Behind the stacks, likewise.
        // Where there is no `/proc`, a process knows nothing of its files.
        let modules = match Modules::read(mapping) {
            noted if noted.program().is_some() => noted,
            _ => files::seen(key(mapping)),
        };
        handovers::recognise(&mut recorded, &modules);
        Self {
            pid: number(&header.pid),
            parent: number(&header.parent),
            started: long(&header.started),
            exited: long(&header.ended) != 0,
            lock: text(&header.lock),
            sampling: Sampling {
                hold_period: number(&header.hold_period),
                spin_period: number(&header.spin_period),
                cut: long(&header.cut),
                dropped: long(&mapping.sites[0].waits),
                blocked_dropped: long(&header.blocked_dropped),
                orders_dropped: long(&header.orders_dropped),
            },
            threads: threads(mapping),
            unrecorded: long(&header.unrecorded),
            uncounted: number(&header.uncounted),
            clock_step_ns: number(&header.clock_step_ns),
            started_as: text(&header.name),
            recorded,
            noted,
            stacks,
            modules: modules.into(),
        }
    }

    /// The return addresses of a stack.
    pub(crate) fn stack(&self, number: u32) -> Calls<'_> {
        match self.stacks.get(&number) {
            Some((addresses, epoch)) => Calls { addresses, epoch: *epoch },
            None => Calls { addresses: &[], epoch: NOW },
        }
    }

    /// An address that was noted along with a stack.
    pub(crate) fn beside<'a>(&self, number: u32, address: &'a [u64; 1]) -> Calls<'a> {
        Calls { addresses: address, epoch: self.stack(number).epoch }
    }

    /// Its key.
    pub fn key(&self) -> Key {
        (self.pid, self.started)
    }

    /// Acquisitions of all its locks.
    pub fn acquired(&self) -> u64 {
        let locks = self.recorded.iter().filter(|recorded| recorded.kind != Kind::Cond);
        locks.map(|lock| lock.tally.exclusive + lock.tally.shared).sum()
    }

    /// CPU time in waits for its locks, as the samples say of all.
    pub fn lock_spin(&self) -> Duration {
        let locks = self.recorded.iter().filter(|recorded| recorded.kind != Kind::Cond);
        Duration::from_nanos(locks.map(|lock| lock.tally.all_spin_ns()).sum::<f64>() as u64)
    }

    /// The program's file, as `/proc/PID/exe` reads.
    pub fn program_path(&self) -> Option<PathBuf> {
        Some(self.modules.program()?.link())
    }

    /// Whether that reads so.
    pub fn is_program(&self, link: &Path) -> bool {
        self.modules.program().is_some_and(|program| program.is_called(link))
    }

    /// The program's file, without its directory.
    pub fn program(&self) -> String {
        let name = |program: &Listed| name_of(&program.path());
        self.modules.program().map_or_else(|| "unknown".to_owned(), name)
    }
}

/// Text that is padded with zeros.
fn text(words: &[AtomicU64]) -> String {
    // Relaxed: written before the header's magic.
    let bytes = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many threads have counted in a slab; who only makes locks has one, too. Of several that had
/// one after each other only the last counts.
fn threads(mapping: &Mapping) -> u32 {
    // Relaxed: counters.
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    // Relaxed: as above.
    let counted = |slab: &&Slab| slab.slots.iter().any(|s| s.record.load(Ordering::Relaxed) != 0);
    mapping.slabs[..used.min(SLABS)].iter().filter(counted).count() as u32
}
