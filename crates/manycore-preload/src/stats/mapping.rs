//! The shared mapping: made by this process, its forked children and every program it executes,
//! each for itself.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore::sync::clock;
use manycore_stats::{MAGIC, Mapping, Record};
use syscalls::Errno;

use super::room::{self, Part};
use super::{modules, stacks, this_thread, waiters};
use manycore_interpose::counter;
use manycore_interpose::directory::{Directory, say_none, store_bytes};
use manycore_interpose::process;

/// One in this many acquisitions of a thread has its hold measured, on average.
pub const HOLD_PERIOD: u32 = 64;
/// One in this many waits of a thread has its CPU time measured and its place noted, on average.
pub const SPIN_PERIOD: u32 = 8;
/// A hold of this length, some seconds, is not counted: its end was missed.
pub const FORGOTTEN_TICKS: u64 = 1 << 34;

// Relaxed throughout, unless noted: each value is independent, and a Release publishes values that
// belong together.

static MAPPING: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());

/// The mapping of the parent process, until this process has something to count.
static PARENTS: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());
/// This process' own mapping until then: a file of zeros. It is made at the fork, since the process
/// may soon be forbidden to make it.
static SPARE: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());
/// The number of records of the parent at the fork: later ones are of objects that do not exist
/// here.
static PARENTS_RECORDS: AtomicU32 = AtomicU32::new(0);
/// The time of the fork, in ticks, and the process that it made.
static FORKED: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Protects the filling in of a forked child's mapping.
static FILLING: Futex = Futex::new();

/// This process' mapping, which is initialised now in a forked child; `None` before it is opened,
/// or if that failed.
pub fn get() -> Option<&'static Mapping> {
    // A child that does not know yet that it was forked would count in its parent's mapping.
    manycore::sync::process::generation();
    opened().or_else(inherit)
}

/// As [`get`], but a forked child's mapping is not initialised.
pub fn opened() -> Option<&'static Mapping> {
    // Acquire: partner of the Releases in `open` and `inherit`, for the header. SAFETY: null, or a
    // mapping of this size that is never unmapped; all of it is atomics. The parts that are not in
    // memory (`room`) are not read: a reference to data in cells does not allow speculative reads.
    unsafe { MAPPING.load(Ordering::Acquire).as_ref() }
}

/// Makes the mapping as a file in `MANYCORE_STATS`.
pub fn open(directory: &CStr, lock: &[u8]) {
    DIRECTORY.set(directory);
    let now = clock::now();
    match map_file(now) {
        Ok(mapping) => {
            // SAFETY: `map_file` has mapped it permanently, at first all zero, which is a valid
            // mapping.
            let mapped = unsafe { &*mapping };
            fill_in(mapped, lock, (process::id(), process::parent()), now);
            this_thread::note_name(&mapped.header.name);
            // Release: partner of the Acquire in `get`.
            MAPPING.store(mapping, Ordering::Release);
            modules::read_maps(mapped);
        }
        Err(error) => say_none(directory, b"MANYCORE_STATS", error),
    }
}

fn fill_in(mapping: &Mapping, lock: &[u8], (pid, parent): (u32, u32), started: u64) {
    let header = &mapping.header;
    header.pid.store(pid, Ordering::Relaxed);
    header.parent.store(parent, Ordering::Relaxed);
    header.started.store(started, Ordering::Relaxed);
    header.hold_period.store(HOLD_PERIOD, Ordering::Relaxed);
    header.spin_period.store(SPIN_PERIOD, Ordering::Relaxed);
    // The catch-alls.
    header.records.store(1, Ordering::Relaxed);
    header.distributions.store(1, Ordering::Relaxed);
    header.stacks.store(1, Ordering::Relaxed);
    header.sites.store(1, Ordering::Relaxed);
    header.thread_entries.store(1, Ordering::Relaxed);
    store_bytes(&header.lock, lock);
    if let Some(step) = counter::step_ns() {
        header.clock_step_ns.store(step, Ordering::Relaxed);
    }
    // Release: partner of the command's Acquire; a thread that sees the magic sees the header.
    header.magic.store(MAGIC, Ordering::Release);
}

/// `MANYCORE_STATS`.
static DIRECTORY: Directory = Directory::new();

/// Maps a new file. Its name has the start time of the process' statistics, which distinguishes
/// files before any word is written.
fn map_file(now: u64) -> Result<*mut Mapping, Errno> {
    let made = DIRECTORY.make(now, ".stats", size_of::<Mapping>(), room::map);
    made.map(|address| address.cast())
}

/// Whether this process has a mapping, or may get one: an ancestor or the process itself has opened
/// it.
pub fn is_there() -> bool {
    opened().is_some() || !SPARE.load(Ordering::Relaxed).is_null()
}

/// Called in the child of a fork: makes a file for it, which its first event initialises. Most
/// children execute another program or end before they have taken a lock, and initialising and
/// reading a file for each would cost more than the fork.
pub fn forked() {
    let was_spare = SPARE.load(Ordering::Relaxed);
    crate::own_lock::set_free(&FILLING);
    // If a child has counted nothing, its own child gets the same mapping as that child.
    if let Some(parents) = opened() {
        // The parent may have made more of them since, in memory that the child does not have.
        let records = parents.header.records.load(Ordering::Relaxed) as usize;
        let records = records.min(room::capacity(Part::Records)) as u32;
        PARENTS_RECORDS.store(records, Ordering::Relaxed);
        PARENTS.store(core::ptr::from_ref(parents).cast_mut(), Ordering::Relaxed);
        MAPPING.store(core::ptr::null_mut(), Ordering::Relaxed);
    }
    let now = clock::now();
    FORKED.store(now, Ordering::Relaxed);
    PROCESS.store(process::id(), Ordering::Relaxed);
    // If it fails, the command has ended, and its directory was removed. The child continues
    // without statistics, and does not touch the parent's.
    let made = map_file(now).inspect_err(|_| count_uncounted());
    SPARE.store(made.unwrap_or(core::ptr::null_mut()), Ordering::Relaxed);
    if !was_spare.is_null() {
        // The parent's, which no thread of this process has used.
        room::unmap(was_spare);
    }
}

/// Counts this process, which will have no statistics, in those of its nearest ancestor that has.
fn count_uncounted() {
    // SAFETY: null, or a mapping that is never unmapped.
    if let Some(parents) = unsafe { PARENTS.load(Ordering::Relaxed).as_ref() } {
        parents.header.uncounted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Initialises the mapping of a forked child with the parent's records, but not its counts. It
/// makes no system call, because by now any may be forbidden.
#[cold]
fn inherit() -> Option<&'static Mapping> {
    // Acquire: partner of the Release below; a thread that reads the flag sees the filled mapping.
    if SPARE.load(Ordering::Acquire).is_null() {
        return opened();
    }
    FILLING.acquire();
    // Relaxed, both: ordered by `FILLING`.
    let (new, old) = (SPARE.load(Ordering::Relaxed), PARENTS.load(Ordering::Relaxed));
    if !new.is_null() {
        // SAFETY: both are mappings that are never unmapped; the new one is zero, and used by no
        // other thread before the Release below.
        copy_records(unsafe { &*old }, unsafe { &*new });
        // Release: partner of the Acquire in `opened`.
        MAPPING.store(new, Ordering::Release);
        // Release: partner of the Acquire above. Stored only after `MAPPING`: otherwise another
        // thread would find neither, and take that for a failure.
        SPARE.store(core::ptr::null_mut(), Ordering::Release);
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { FILLING.release() };
    opened()
}

fn copy_records(old: &Mapping, new: &Mapping) {
    let mut name = [0; 32];
    for (bytes, word) in name.chunks_exact_mut(8).zip(&old.header.lock) {
        bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
    }
    // The nearest ancestor that has counted: a process between the two that counted nothing left no
    // statistics.
    let parent = old.header.pid.load(Ordering::Relaxed);
    let started = FORKED.load(Ordering::Relaxed);
    fill_in(new, &name, (PROCESS.load(Ordering::Relaxed), parent), started);
    let records = PARENTS_RECORDS.load(Ordering::Relaxed);
    new.header.records.store(records, Ordering::Relaxed);
    for (from, to) in old.records.iter().zip(new.records.iter()).take(records as usize) {
        copy_record(from, to);
    }
    stacks::forked(old, new);
    waiters::forked(old, new);
    modules::copy(old, new);
}

fn copy_record(from: &Record, to: &Record) {
    let copy = |from: &AtomicU32, to: &AtomicU32| {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed)
    };
    copy(&from.kind, &to.kind);
    copy(&from.live, &to.live);
    copy(&from.objects, &to.objects);
    copy(&from.stack, &to.stack);
    copy(&from.epoch, &to.epoch);
    to.address.store(from.address.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// From now on times are no finer than this.
pub fn times_are_coarse(step_ns: u32) {
    if let Some(mapping) = opened() {
        mapping.header.clock_step_ns.store(step_ns, Ordering::Relaxed);
    }
}
