//! Which CPUs the process may use by now.
//!
//! Whoever chose the CPUs looked at the affinity mask that the program was started with. The program may change it, or somebody else may. No
//! call is executed outside of it then: it is looked at when a thread of ours starts, and when a call is moved a second or
//! more after the last look. Threads that find it changed bind themselves anew, before their next call: to their CPU if that may be used, and else to
//! all that may. (The set of a control group the kernel sees to by itself, for threads that run as for those that are bound.)
//!
//! Linux keeps a mask for each thread. The process' is that of its first thread.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use manycore::sync::clock;
use syscalls::{Sysno, raw_syscall};

use crate::raw;

/// As many CPUs as Linux can be built for.
const WORDS: usize = 8192 / 64;

/// The time between two looks, in ticks: about a second.
const PERIOD: u64 = 1 << 31;

static LOOKED: AtomicU64 = AtomicU64::new(0);

/// Changes with the mask, and is 0 before it was first looked at.
static VERSION: AtomicU32 = AtomicU32::new(0);

static MASK: [AtomicU64; WORDS] = [const { AtomicU64::new(!0) }; WORDS];

/// Which mask a thread is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u32);

/// Looks if that is due.
#[inline]
pub fn look() {
    let looked = LOOKED.load(Ordering::Relaxed); // Relaxed: decides nothing but who looks, and when
    let now = clock::now();
    if now.wrapping_sub(looked) > PERIOD {
        look_now(looked, now);
    }
}

#[cold]
fn look_now(looked: u64, now: u64) {
    // Relaxed, both: as in `look`.
    if LOOKED.compare_exchange(looked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        read();
    }
}

/// Reads the mask. Two at a time store the same, or one that the next look corrects.
fn read() {
    let mut mask = [0_u64; WORDS];
    // SAFETY: the kernel writes as many bytes at most; says how many.
    let length = unsafe {
        let process = raw_syscall!(Sysno::getpid);
        raw_syscall!(Sysno::sched_getaffinity, process, size_of_val(&mask), mask.as_mut_ptr())
    };
    // The process' first thread has ended, and nobody can say.
    if (length as isize) <= 0 {
        return;
    }
    // Relaxed: the words have no order among them; who reads them halfway changed finds another version soon.
    let is_other = MASK
        .iter()
        .zip(mask)
        .fold(false, |other, (word, new)| word.swap(new, Ordering::Relaxed) != new || other);
    if is_other {
        // Release: partner of the Acquire in `version`.
        VERSION.fetch_add(1, Ordering::Release);
    }
}

/// Which mask holds now.
#[inline]
pub fn version() -> Version {
    // Acquire: partner of the Release in `read`.
    Version(VERSION.load(Ordering::Acquire))
}

/// Whether the process may use a CPU, as far as was last seen.
pub fn has(cpu: u16) -> bool {
    let word = MASK.get(usize::from(cpu) / 64);
    word.is_none_or(|word| word.load(Ordering::Relaxed) >> (cpu % 64) & 1 != 0) // Relaxed: as in `read`
}

/// Binds the calling thread, which was just made, to a CPU, or if the process may not use that to those that it may. Says by which mask.
pub fn bind_new(cpu: Option<u16>) -> Version {
    read();
    let version = version();
    bind(cpu);
    version
}

/// The same for a thread that is bound by an older mask, if there is a newer one.
#[inline]
pub fn bind_again(cpu: Option<u16>, bound: &mut Version) {
    let version = version();
    if version != *bound {
        *bound = version;
        bind(cpu);
    }
}

#[cold]
fn bind(cpu: Option<u16>) {
    match cpu {
        Some(cpu) if has(cpu) => _ = raw::bind(cpu),
        _ => {
            let mask: [u64; WORDS] = core::array::from_fn(|at| MASK[at].load(Ordering::Relaxed)); // Relaxed: as in `read`
            raw::bind_within(&mask);
        }
    }
}

/// In the child of a fork, which may have another mask soon.
pub fn forked() {
    LOOKED.store(0, Ordering::Relaxed); // Relaxed: nobody else is there
}
