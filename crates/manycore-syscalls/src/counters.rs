//! Counting what is moved and what is not, in a file that the command reads.
//!
//! With `MANYCORE_SYSCALLS_STATS=DIR`, each process has a mapped file in DIR, whose layout is [`manycore_profile::layout::syscalls`].
//! Without it, counting is a load and a branch.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use manycore::sync::{clock, cpu};
use manycore_interpose::message::say;
use manycore_interpose::path::Path;
use manycore_profile::layout::syscalls::{Function, MAGIC, Mapping, Outcome, SHARDS};
use manycore_steer::Settings;
use syscalls::{Errno, Sysno, raw_syscall};

// Relaxed throughout, unless noted: a counter orders nothing.

static MAPPING: AtomicPtr<Mapping> = AtomicPtr::new(core::ptr::null_mut());

/// `MANYCORE_SYSCALLS_STATS`, kept for forked children: programs that change their title overwrite their environment.
static DIRECTORY: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

#[inline]
fn mapping() -> Option<&'static Mapping> {
    // Acquire: partner of the Release in `open`.
    // SAFETY: null, or a mapping of this size that stays; all of it is atomics.
    unsafe { MAPPING.load(Ordering::Acquire).as_ref() }
}

/// Counts a call that is executed in place, or what became of a moved one.
#[inline]
pub fn count(function: Function, outcome: Outcome) {
    if let Some(mapping) = mapping() {
        mapping.count(cpu::current(), function, outcome);
    }
}

/// Counts a call that was moved, and took so many ticks.
#[inline]
pub fn moved(function: Function, ticks: u64) {
    if let Some(mapping) = mapping() {
        let cpu = cpu::current();
        mapping.count(cpu, function, Outcome::Moved);
        mapping.shards[cpu as usize % SHARDS].latency.count(ticks);
    }
}

/// Makes the mapping.
pub fn open(directory: &CStr, settings: &Settings) {
    let mut bytes = directory.to_bytes().iter().copied();
    for word in &DIRECTORY {
        let part = core::array::from_fn(|_| bytes.next().unwrap_or(0));
        word.store(u64::from_le_bytes(part), Ordering::Relaxed);
    }
    let Ok(mapping) = map_file() else {
        return say(&[
            b"no statistics of this process: cannot make a file in ",
            directory.to_bytes(),
            b" (MANYCORE_SYSCALLS_STATS)",
        ]);
    };
    // SAFETY: of this size and zero, which is a valid mapping.
    let header = unsafe { &(*mapping).header };
    for cpu in settings.groups.cpus() {
        if let Some(word) = header.cpus.get(usize::from(*cpu) / 64) {
            word.fetch_or(1 << (cpu % 64), Ordering::Relaxed);
        }
    }
    let mut name = settings.mechanism.name().bytes();
    for word in &header.mechanism {
        let part = core::array::from_fn(|_| name.next().unwrap_or(0));
        word.store(u64::from_le_bytes(part), Ordering::Relaxed);
    }
    publish(mapping);
}

/// In the child of a fork: a mapping of its own.
pub fn forked() {
    let Some(old) = mapping() else { return };
    let Ok(new) = map_file() else {
        // The command is gone, and its directory with it.
        MAPPING.store(core::ptr::null_mut(), Ordering::Relaxed);
        return;
    };
    // SAFETY: as in `open`.
    let header = unsafe { &(*new).header };
    let copied = old.header.cpus.iter().zip(&header.cpus);
    for (from, to) in copied.chain(old.header.mechanism.iter().zip(&header.mechanism)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    publish(new);
    // SAFETY: the child's view of its parent's file; nobody counts there any more.
    unsafe { raw_syscall!(Sysno::munmap, core::ptr::from_ref(old), size_of::<Mapping>()) };
}

fn publish(mapping: *mut Mapping) {
    // SAFETY: of this size and zero, but for what was just written; and system calls without arguments.
    let (header, pid, parent) =
        unsafe { (&(*mapping).header, raw_syscall!(Sysno::getpid), raw_syscall!(Sysno::getppid)) };
    header.pid.store(pid as u32, Ordering::Relaxed);
    header.parent.store(parent as u32, Ordering::Relaxed);
    header.started.store(clock::now(), Ordering::Relaxed);
    // Release: partner of the command's Acquire; whoever sees the magic sees the header.
    header.magic.store(MAGIC, Ordering::Release);
    // Release: partner of the Acquire in `mapping`.
    MAPPING.store(mapping, Ordering::Release);
}

fn map_file() -> Result<*mut Mapping, Errno> {
    let mut path = Path::default();
    DIRECTORY.iter().for_each(|word| path.push(&word.load(Ordering::Relaxed).to_le_bytes()));
    path.end_at_zero();
    path.push(b"/");
    // SAFETY: a system call without arguments.
    path.push_number(unsafe { raw_syscall!(Sysno::getpid) } as u64);
    path.push(b"-");
    path.push_number(clock::now());
    path.push(b".syscalls");
    path.map_new(size_of::<Mapping>()).map(|address| address.cast())
}
