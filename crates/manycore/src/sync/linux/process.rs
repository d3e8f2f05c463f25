//! Telling a process from the child that it forked, however that was forked: by `fork`, `_Fork`, or a system call of the
//! program's own, of which libc knows nothing.
//!
//! The kernel wipes a page of ours in a child that gets a copy of it. A child that *shares* its parent's memory, as
//! between `vfork` and `exec`, is the same thread to all that is here, as it is to libc.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use syscalls::{Errno, Sysno, raw_syscall};

use super::{hint, node, thread};

/// What is wiped in a child of a fork.
#[repr(C, align(4096))]
pub struct Wiped {
    /// [`WIPED`], the number of the thread that renews it, or [`CURRENT`].
    state: AtomicU32,
    /// For whoever embeds this library: 0 in a child.
    pub word: AtomicUsize,
}

const WIPED: u32 = 0;
const CURRENT: u32 = u32::MAX;

/// In use until [`watch_forks`], and where the kernel has no such page: children of `fork` only are noticed then, by [`forked`].
static NEVER_WIPED: Wiped = Wiped { state: AtomicU32::new(CURRENT), word: AtomicUsize::new(0) };

static PAGE: AtomicPtr<Wiped> = AtomicPtr::new((&raw const NEVER_WIPED).cast_mut());

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The page that is wiped.
#[inline]
pub fn wiped() -> &'static Wiped {
    // Acquire: partner of the Release in `watch_forks`.
    // SAFETY: one of two pages that stay.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

/// Has forks noticed that libc does not tell of, from now on. To be called while there is one thread.
pub fn watch_forks() {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let size = size_of::<Wiped>();
    // SAFETY: new memory of our own, of which the kernel is asked to wipe it in children.
    let page = unsafe {
        let mapped = raw_syscall!(Sysno::mmap, 0, size, protection, flags, usize::MAX, 0);
        Errno::from_ret(mapped).and_then(|page| {
            let advised = raw_syscall!(Sysno::madvise, page, size, libc::MADV_WIPEONFORK);
            Errno::from_ret(advised).map(|_| page)
        })
    };
    if let Ok(page) = page {
        let page = core::ptr::with_exposed_provenance_mut::<Wiped>(page);
        // Relaxed: published by the Release below, partner of the Acquire in `wiped`.
        // SAFETY: mapped above, and zero, which is a value of atomics.
        unsafe { (*page).state.store(CURRENT, Ordering::Relaxed) };
        PAGE.store(page, Ordering::Release);
    }
}

/// How often this process and its ancestors have forked since they loaded this library. What refers to other threads
/// and was written in another generation is void: those threads were not copied.
#[inline]
pub fn generation() -> u32 {
    // Acquire: partner of the Release in `renew`.
    if wiped().state.load(Ordering::Acquire) != CURRENT {
        renew();
    }
    GENERATION.load(Ordering::Relaxed) // Relaxed: ordered by the state
}

/// In a child that was forked past libc: the first thread that notices makes a generation of it, and others wait. A signal
/// handler above that thread does not: it goes on with what there is.
#[cold]
fn renew() {
    let state = &wiped().state;
    let me = thread::id();
    // Acquire, on failure: partner of the Release below. Relaxed, on success: the child has one thread, or those that it made itself.
    match state.compare_exchange(WIPED, me, Ordering::Relaxed, Ordering::Acquire) {
        Ok(_) => {
            node::orphaned();
            next_generation();
            // Release: partner of the Acquires here and in `generation`.
            state.store(CURRENT, Ordering::Release);
        }
        Err(other) if other == me => {}
        Err(_) => {
            // Acquire: as above.
            while state.load(Ordering::Acquire) != CURRENT {
                hint::yield_now();
            }
        }
    }
}

/// In the child of a fork, where there is one thread, and libc has said so.
pub(super) fn forked() {
    next_generation();
    wiped().state.store(CURRENT, Ordering::Relaxed); // Relaxed: there is one thread
}

fn next_generation() {
    // Relaxed: written only by the one thread that renews it, and published by the state.
    GENERATION.store(GENERATION.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
