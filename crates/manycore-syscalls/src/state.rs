//! Whether calls are moved in this process, and what has to happen before.
//!
//! The word is in memory that the kernel wipes in a child that gets a copy of it, however the child
//! was forked: by `fork`, `_Fork`, `daemon`, or a system call of the program's own. The child's
//! first call notices that, before it could wait for a worker that is not there. A child that
//! *shares* the memory does not have its word wiped: see [`crate::thread`].

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use manycore_interpose::process;
use manycore_stats::syscalls::Outcome;
use syscalls::{Errno, Sysno, raw_syscall};

use crate::table::OFFLOAD;
use crate::{counters, program_threads, table, thread};

/// The word is new: this is a child.
const WIPED: u32 = 0;
/// The child's first call initialises its state; meanwhile other calls are executed in place.
const RENEWING: u32 = 1;
/// Calls are moved.
const MOVING: u32 = 2;
/// Calls are executed in place, for good.
const IN_PLACE: u32 = 3;

static BEFORE_START: AtomicU32 = AtomicU32::new(IN_PLACE);

static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const BEFORE_START).cast_mut());

/// The process whose state this is; 0 if calls were never moved.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Why calls are executed in place for good.
static REASON: AtomicU32 = AtomicU32::new(Outcome::NotStarted as u32);

fn word() -> &'static AtomicU32 {
    // Acquire: partner of the Release in `start`.
    // SAFETY: it leads to `BEFORE_START`, which is static, or to the page of `start`, which is not
    // unmapped.
    unsafe { &*WORD.load(Ordering::Acquire) }
}

/// Whether calls are moved; if not, why.
#[inline]
pub fn check() -> Result<(), Outcome> {
    // Acquire: partner of the Releases in `start` and `renew`: a thread that sees it moving sees
    // the table.
    match word().load(Ordering::Acquire) {
        MOVING => Ok(()),
        other => not_moving(other),
    }
}

#[cold]
fn not_moving(state: u32) -> Result<(), Outcome> {
    match state {
        WIPED => renew(),
        RENEWING => Err(Outcome::NotStarted),
        _ => Err(reason()),
    }
}

/// Why calls are executed in place for good.
fn reason() -> Outcome {
    // Relaxed: stands for itself.
    Outcome::ALL[REASON.load(Ordering::Relaxed) as usize]
}

/// Starts to move calls; returns whether that is possible.
pub fn start() -> bool {
    let size = 4096;
    // SAFETY: a new private mapping at an address that the kernel chooses touches no memory of
    // ours, and neither does advice about it.
    let address = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapped = raw_syscall!(Sysno::mmap, 0, size, protection, flags, usize::MAX, 0);
        Errno::from_ret(mapped).and_then(|address| {
            let advice = libc::MADV_WIPEONFORK;
            Errno::from_ret(raw_syscall!(Sysno::madvise, address, size, advice)).map(|_| address)
        })
    };
    let Ok(address) = address else { return false };
    let word = address as *mut AtomicU32;
    // SAFETY: the page was mapped just now, readable and writable, is not unmapped, and all zero is
    // an `AtomicU32`.
    // Release: partner of the Acquire in `check`.
    unsafe { (*word).store(MOVING, Ordering::Release) };
    PROCESS.store(process::id(), Ordering::Relaxed); // Relaxed: no other thread needs it
    // Release: partner of the Acquire in `word`.
    WORD.store(word, Ordering::Release);
    true
}

/// Executes all calls in place from now on, in this process and its children.
pub fn end(why: Outcome) {
    // Relaxed: the first reason stays; nothing else depends on it.
    let before_start = Outcome::NotStarted as u32;
    let _ = REASON.compare_exchange(
        before_start,
        why as u32,
        Ordering::Relaxed,
        Ordering::Relaxed, // Relaxed: as said
    );
    // Relaxed: calls that are being moved return as they would have without this store.
    word().store(IN_PLACE, Ordering::Relaxed);
}

/// Called in the child of libc's `fork`. An emulator may promise to wipe the page, and not do so.
pub fn forked() {
    // Relaxed, both: the child has one thread.
    let of = PROCESS.load(Ordering::Relaxed);
    if of != 0 && of != process::id() {
        word().store(WIPED, Ordering::Relaxed);
    }
    let _ = check();
}

/// Initialises the state in the child of a fork, where the parent's routes and workers do not
/// exist. If the parent already executed calls in place, so does the child; but the parent's
/// workers may have left descriptors.
fn renew() -> Result<(), Outcome> {
    // Relaxed: the first thread does it, and the others, such as a signal handler above it, do not
    // wait.
    let first =
        word().compare_exchange(WIPED, RENEWING, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if !first {
        return Err(Outcome::NotStarted);
    }
    PROCESS.store(process::id(), Ordering::Relaxed); // Relaxed: as in `forked`
    program_threads::forked();
    if let Some(call) = thread::in_flight() {
        // SAFETY: the call is on this thread's stack, below the handler that forked, and its frame
        // is there until the handler returns.
        OFFLOAD.forked_in_flight(unsafe { &(*call).flight });
    }
    thread::forked();
    table::forked();
    let ended = reason();
    if ended != Outcome::NotStarted {
        // The child counts in its parent's file, because it may not be able to make one any more.
        end(ended);
        return Err(ended);
    }
    counters::forked();
    // Release: partner of the Acquire in `check`.
    word().store(MOVING, Ordering::Release);
    Ok(())
}
