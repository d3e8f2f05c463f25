//! Telling a process from the child that it forked.
//!
//! # Forks past the C library
//!
//! Handlers of `pthread_atfork` do not run in a child of `_Fork`, or of a `clone` that the program
//! makes itself. A library that [watches](watch) for such children has a word in memory that the
//! kernel wipes in each child that gets a copy of it, by whatever call the child was forked. The
//! child's first call of [`generation`] finds the word wiped, and then runs the registered
//! function. A child that shares the memory (`vfork`) keeps the word, and does not count as another
//! process here.
//!
//! Emulators accept the advice and wipe nothing. So the number of the process stands beside the
//! word: a child of the C library's fork that finds another number there is new, too.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use syscalls::{Errno, Sysno, raw_syscall};

/// One more than the generation, where no thread watches.
static UNWATCHED: AtomicU32 = AtomicU32::new(1);

/// One more than the generation; 0 in a child that has not noticed yet that it is one.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const UNWATCHED).cast_mut());

/// The generation, where the kernel does not wipe it.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The process that has counted last.
static COUNTED_IN: AtomicU32 = AtomicU32::new(0);

/// The function that the child runs: an `extern "C" fn()`, or null.
static IN_CHILD: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

// Relaxed throughout: all is written by the only thread of a process, at its start or in a child.

#[inline]
fn word() -> &'static AtomicU32 {
    // SAFETY: it leads to `UNWATCHED`, which is static, or to the page of `watch`, which is not
    // unmapped.
    unsafe { &*WORD.load(Ordering::Relaxed) }
}

/// How often this process and its ancestors have forked since they loaded this library. Data that
/// refer to other threads are void in another generation than that in which they were written,
/// because those threads were not copied.
#[inline]
pub fn generation() -> u32 {
    match word().load(Ordering::Relaxed) {
        0 => notice(),
        next => next.wrapping_sub(1),
    }
}

/// Called in a child that the C library has not announced.
#[cold]
fn notice() -> u32 {
    if next_generation() {
        let in_child = IN_CHILD.load(Ordering::Relaxed);
        if !in_child.is_null() {
            // SAFETY: `watch` is the only one to store there, an `extern "C" fn()`.
            unsafe { core::mem::transmute::<*mut (), extern "C" fn()>(in_child)() };
        }
    }
    LAST.load(Ordering::Relaxed)
}

/// Counts a fork; returns whether the calling thread is the forking one.
pub(super) fn next_generation() -> bool {
    let before = word().load(Ordering::Relaxed);
    let generation = LAST.load(Ordering::Relaxed).wrapping_add(1);
    // A word is never 0 but for the kernel.
    let next = generation.wrapping_add(1).max(1);
    let counted =
        word().compare_exchange(before, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if counted {
        LAST.store(generation, Ordering::Relaxed);
        COUNTED_IN.store(number(), Ordering::Relaxed);
    }
    counted
}

/// The kernel's number of this process.
pub(super) fn number() -> u32 {
    // SAFETY: `getpid` takes no arguments, and the call changes nothing in memory.
    unsafe { raw_syscall!(Sysno::getpid) as u32 }
}

/// Called in the child of a fork, where there is one thread.
pub(super) fn forked() {
    next_generation();
}

/// Ensures that `in_child` runs in every child that has a copy of this process' memory: before the
/// first result of [`generation`] there, or at [`forked_by_libc`], whichever comes first. The
/// function may use locks and wait queues. To be called while there is one thread.
///
/// Where the kernel cannot wipe memory (before Linux 4.14), the function runs in children that the
/// C library forks.
pub fn watch(in_child: extern "C" fn()) {
    IN_CHILD.store(in_child as *mut (), Ordering::Relaxed);
    COUNTED_IN.store(number(), Ordering::Relaxed);
    let size = 4096;
    // SAFETY: a new private mapping at an address that the kernel chooses touches no memory of
    // ours, and neither does advice on it.
    let page = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapped = raw_syscall!(Sysno::mmap, 0, size, protection, flags, usize::MAX, 0);
        Errno::from_ret(mapped).and_then(|page| {
            let advice = libc::MADV_WIPEONFORK;
            Errno::from_ret(raw_syscall!(Sysno::madvise, page, size, advice)).map(|_| page)
        })
    };
    if let Ok(page) = page {
        let wiped = core::ptr::with_exposed_provenance_mut::<AtomicU32>(page);
        // SAFETY: the page was mapped just now, readable and writable, is not unmapped, and all
        // zero is an `AtomicU32`.
        unsafe { (*wiped).store(LAST.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed) };
        WORD.store(wiped, Ordering::Relaxed);
    }
}

/// To be called in the child by a handler of `pthread_atfork`, by the thread that watches.
pub fn forked_by_libc() {
    let is_wiped = !core::ptr::eq(word(), &raw const UNWATCHED);
    // Otherwise the child has noticed the fork already: nothing is left to do.
    let is_new = COUNTED_IN.load(Ordering::Relaxed) != number();
    if !is_wiped || is_new || word().load(Ordering::Relaxed) == 0 {
        notice();
    }
}
