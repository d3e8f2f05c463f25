//! The file of one process, which may live or have died in any way, and all data that are read from
//! it, before names are looked up.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manycore_launch::regular;
use manycore_stats::{BY_STACK, Kind, Mapping, SLABS, Slab, syscalls};
use memmap2::{MmapOptions, MmapRaw};

use self::decode::{NotedStack, Recorded};
use self::noted::Noted;
use crate::analyze::names::files;
use crate::analyze::names::listed::Listed;
use crate::analyze::names::modules::{Modules, NOW};
use crate::analyze::names::symbols::{Calls, name_of};
use crate::profile::Sampling;

pub(super) mod decode;
mod handovers;
pub(super) mod noted;

pub use crate::analyze::names::modules::{Key, key};

/// What a file of statistics consists of.
///
/// # Safety
///
/// The type consists of atomics only, for which any bytes are valid, and is aligned to no more than
/// a page.
pub unsafe trait Layout {
    /// What `magic` holds when the header is there.
    const MAGIC: u64;

    /// Where `magic` is.
    const MAGIC_AT: usize;

    /// Stored last (Release) by the process.
    fn magic(&self) -> &AtomicU64;
}

// SAFETY: it consists of atomics and arrays of them, for which any bytes are valid values, and
// needs at most a word's alignment.
unsafe impl Layout for Mapping {
    const MAGIC: u64 = manycore_stats::MAGIC;
    const MAGIC_AT: usize = offset_of!(Mapping, header.magic);

    fn magic(&self) -> &AtomicU64 {
        &self.header.magic
    }
}

// SAFETY: it consists of atomics and arrays of them, for which any bytes are valid values, and
// needs at most a word's alignment.
unsafe impl Layout for syscalls::Mapping {
    const MAGIC: u64 = syscalls::MAGIC;
    const MAGIC_AT: usize = offset_of!(syscalls::Mapping, header.magic);

    fn magic(&self) -> &AtomicU64 {
        &self.header.magic
    }
}

/// A mapped statistics file. Later writes of the process are visible.
pub struct StatsFile<L = Mapping> {
    map: MmapRaw,
    layout: PhantomData<L>,
}

/// Why a file cannot be read as statistics, in one line.
#[derive(Debug)]
pub struct Unreadable {
    path: PathBuf,
    why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Unreadable {}

impl<L> fmt::Debug for StatsFile<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatsFile").field("map", &self.map).finish_non_exhaustive()
    }
}

impl<L: Layout> StatsFile<L> {
    /// Maps the file and checks its layout. `None` if the process has noted nothing yet.
    pub fn open(path: &Path) -> Result<Option<Self>, Unreadable> {
        let unreadable = |why: String| Unreadable { path: path.to_owned(), why };
        let failed = |error: std::io::Error| unreadable(error.to_string());
        // Others may write where this is: a link could lead anywhere.
        let file = regular::open_no_link(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let whole = size_of::<L>() as u64;
        if found < whole {
            return Err(unreadable(format!(
                "{found} bytes instead of {whole}: the file was cut, or is no statistics file"
            )));
        }
        // Most forked processes note nothing, and mapping a file takes longer than reading a word.
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, L::MAGIC_AT as u64).map_err(failed)?;
        if magic == [0; 8] {
            return Ok(None);
        }
        let map = MmapOptions::new().map_raw_read_only(&file).map_err(failed)?;
        let this = Self { map, layout: PhantomData };
        // Acquire: partner of the Release by which the process publishes the header.
        match this.get().magic().load(Ordering::Acquire) {
            magic if magic == L::MAGIC => Ok(Some(this)),
            0 => Ok(None),
            _ => Err(unreadable(
                "no statistics file of this version: the command and the preload library must be of one build".into(),
            )),
        }
    }

    /// The statistics.
    pub fn get(&self) -> &L {
        // SAFETY: the map is as long as the layout (checked above), aligned to a page, and lives as
        // long as `self`. It consists of atomics, for which any bytes are valid values; another
        // process may write them. No program truncates such a file: the process makes it once, and
        // the command removes but never shortens it.
        unsafe { &*self.map.as_ptr().cast::<L>() }
    }
}

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
    /// The number of forked children that could not make statistics.
    pub uncounted: u32,
    /// Nanoseconds between two values of the clock, if the process may not read the time-stamp
    /// counter; 0 if it may.
    pub clock_step_ns: u32,
    /// The name that the kernel gave the program at its start; empty for a forked process.
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
        // Relaxed, all: these were written before the header's magic, or are counters.
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
        // Read after the records that refer to them, so that all of their targets exist.
        let stacks = decode::stacks(mapping, of_locks.chain(of_waits).chain(of_orders)).into();
        // After the stacks, which refer to modules, for the same reason. Without `/proc`, a process
        // does not know its files.
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

    /// CPU time of waits for the process' locks, estimated from samples.
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

/// The number of threads that have counted in a slab; a thread that only creates locks also has
/// one. If several threads used one slab after each other, only the last one counts.
fn threads(mapping: &Mapping) -> u32 {
    // Relaxed: counters.
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    // Relaxed: as above.
    let counted = |slab: &&Slab| slab.slots.iter().any(|s| s.record.load(Ordering::Relaxed) != 0);
    mapping.slabs[..used.min(SLABS)].iter().filter(counted).count() as u32
}
