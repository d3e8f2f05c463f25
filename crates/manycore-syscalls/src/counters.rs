//! Counts of moved calls and of others, in a file that the command reads.
//!
//! With `MANYCORE_SYSCALLS_STATS=DIR`, each process has a mapped file in DIR, whose layout is
//! [`manycore_stats::syscalls`]. Without it, counting is two loads and a branch each.
//!
//! A forked child makes its file when it has something to count: most children execute another
//! program or end before that, and a file for each would cost more than the fork.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::offload::Settings;
use manycore::sync::{clock, cpu};
use manycore_interpose::directory::{Directory, say_none, store_bytes};
use manycore_interpose::message::say;
use manycore_interpose::process;
use manycore_stats::syscalls::{Function, Header, MAGIC, Mapping, Outcome, SHARDS};
use syscalls::{Errno, Sysno, raw_syscall};

// Relaxed throughout, unless noted: a counter orders nothing.

static MAPPING: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());

/// In a forked child, the mapping of the process that forked it.
static PARENTS: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());

/// What files are called, after process and time.
const ENDING: &str = ".syscalls";

/// `MANYCORE_SYSCALLS_STATS`.
static DIRECTORY: Directory = Directory::new();

/// This process' mapping, which a forked child makes now.
#[inline]
fn mapping() -> Option<&'static Mapping> {
    made(&MAPPING).or_else(|| made(&PARENTS).and_then(inherit))
}

#[inline]
fn made(place: &AtomicPtr<Mapping>) -> Option<&'static Mapping> {
    // Acquire: partner of the Releases in `open`, `inherit` and `forked`. SAFETY: null, or a
    // mapping of this size that stays while any thread counts; all of it is atomics.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// Counts a call that is executed in place, or the result of a moved one.
#[inline]
pub fn count(function: Function, outcome: Outcome) {
    count_with(function, || outcome);
}

/// As [`count`], for an outcome that takes time to determine: without statistics it is not
/// determined.
#[inline]
pub fn count_with(function: Function, outcome: impl FnOnce() -> Outcome) {
    if let Some(mapping) = mapping() {
        mapping.count(cpu::current(), function, outcome());
    }
}

/// Counts a call that was moved to the CPU `to`, and took `ticks` ticks. `is_quick`: it cannot
/// wait.
#[inline]
pub fn moved(function: Function, to: Option<u16>, ticks: u64, is_quick: bool) {
    if let Some(mapping) = mapping() {
        let cpu = cpu::current();
        mapping.count(cpu, function, Outcome::Moved);
        let shard = &mapping.shards[cpu as usize % SHARDS];
        shard.latency.count(ticks);
        if is_quick {
            shard.quick.count(ticks);
        }
        note_used(&mapping.header, to);
    }
}

/// Notes that calls are executed on a CPU.
fn note_used(header: &Header, cpu: Option<u16>) {
    let Some(cpu) = cpu else { return };
    let bit = 1 << (cpu % 64);
    if let Some(word) = header.used.get(usize::from(cpu) / 64)
        // All threads write here: there is one for each CPU.
        && word.load(Ordering::Relaxed) & bit == 0
    {
        word.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Makes the mapping.
pub fn open(directory: &CStr, settings: &Settings) {
    DIRECTORY.set(directory);
    let mapping = match map_file(clock::now()) {
        Ok(mapping) => mapping,
        Err(error) => return say_none(directory, b"MANYCORE_SYSCALLS_STATS", error),
    };
    // SAFETY: `map_file` has mapped it just now, all zero, which is a valid mapping; it stays while
    // any thread counts.
    let header = unsafe { &(*mapping).header };
    for cpu in settings.groups.cpus() {
        if let Some(word) = header.cpus.get(usize::from(*cpu) / 64) {
            word.fetch_or(1 << (cpu % 64), Ordering::Relaxed);
        }
    }
    store_bytes(&header.mechanism, settings.mechanism.name().as_bytes());
    note_program(header);
    publish(header, process::parent());
    // Release: partner of the Acquire in `made`.
    MAPPING.store(mapping, Ordering::Release);
}

/// Gives the child of a fork counts of its own. Its only thread calls this.
pub fn forked() {
    // If a child has counted nothing, its own child gets the same mapping as that child.
    let Some(old) = made(&MAPPING) else { return };
    // Release: partner of the Acquire in `made`.
    let stale = PARENTS.swap(core::ptr::from_ref(old).cast_mut(), Ordering::Release);
    MAPPING.store(core::ptr::null_mut(), Ordering::Relaxed);
    unmap(stale);
}

/// Makes the mapping of a forked child now. Later the program may forbid the necessary calls, or
/// change to a root directory without a place for it.
pub fn prepare() {
    let _ = mapping();
}

/// Makes the mapping of a forked child. A signal handler may interrupt this and do the same; then
/// the handler's mapping is used.
#[cold]
fn inherit(parents: &'static Mapping) -> Option<&'static Mapping> {
    let now = clock::now();
    let new = match map_file(now) {
        Ok(new) => new,
        Err(error) => {
            PARENTS.store(core::ptr::null_mut(), Ordering::Relaxed);
            // Otherwise the command is gone, and its directory with it.
            if error != Errno::ENOENT {
                say(&[b"no statistics of a forked process: it may not make a file in MANYCORE_SYSCALLS_STATS"]);
            }
            return made(&MAPPING);
        }
    };
    let none = core::ptr::null_mut();
    // Release: partner of the Acquire in `made`. Relaxed: that thread checks again.
    if MAPPING.compare_exchange(none, new, Ordering::Release, Ordering::Relaxed).is_err() {
        // The command takes the last file of a process for the one that the process still writes.
        unmap(new);
        DIRECTORY.remove(now, ENDING);
        return made(&MAPPING);
    }
    // SAFETY: `map_file` has mapped it just now, all zero, which is a valid mapping; it stays while
    // any thread counts.
    let header = unsafe { &(*new).header };
    let parts = |header: &'static Header| {
        header.cpus.iter().chain(&header.mechanism).chain(&header.program)
    };
    for (from, to) in parts(&parents.header).zip(parts(header)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    publish(header, parents.header.pid.load(Ordering::Relaxed));
    made(&MAPPING)
}

fn publish(header: &Header, parent: u32) {
    header.pid.store(process::id(), Ordering::Relaxed);
    header.parent.store(parent, Ordering::Relaxed);
    header.started.store(clock::now(), Ordering::Relaxed);
    // Release: partner of the command's Acquire; a thread that sees the magic sees the header.
    header.magic.store(MAGIC, Ordering::Release);
}

/// Removes a mapping in which no thread counts.
fn unmap(mapping: *mut Mapping) {
    if !mapping.is_null() {
        // SAFETY: the mapping is of this size, and no thread counts in it or will: the callers have
        // not shown it to others, or are the only thread of a forked child.
        unsafe { raw_syscall!(Sysno::munmap, mapping, size_of::<Mapping>()) };
    }
}

/// Notes which file the program is.
fn note_program(header: &Header) {
    let mut path = [0_u8; 512];
    let link = c"/proc/self/exe".as_ptr();
    // SAFETY: the path is a string, and the kernel writes no more than there is room for.
    #[cfg(target_arch = "x86_64")]
    let length = unsafe { raw_syscall!(Sysno::readlink, link, path.as_mut_ptr(), path.len()) };
    // SAFETY: the link's name is a string, and the kernel writes no more than `path` has room for.
    #[cfg(target_arch = "aarch64")]
    let length = unsafe {
        raw_syscall!(Sysno::readlinkat, libc::AT_FDCWD, link, path.as_mut_ptr(), path.len())
    };
    let length = Errno::from_ret(length).unwrap_or_default();
    store_bytes(&header.program, &path[..length]);
}

fn map_file(now: u64) -> Result<*mut Mapping, Errno> {
    DIRECTORY.map_new(now, ENDING, size_of::<Mapping>()).map(|address| address.cast())
}
