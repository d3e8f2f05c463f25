//! Which CPUs the process may use by now.
//!
//! The command has chosen the CPUs by the affinity mask with which it started the program. The
//! program or another process may change the mask. No call is executed outside of it then: our
//! threads read the mask when they start. A caller reads it when it opens a route, and when it
//! moves a call half a second or more after the last read. Threads that find it changed bind
//! themselves anew before their next call: to their CPU if that may be used, and otherwise to all
//! that may. (The kernel itself enforces the set of a control group, for running threads and for
//! bound ones.)
//!
//! Linux keeps a mask for each thread. The process' mask here combines the masks of its first
//! thread and of the reading thread, because a program may bind only its first thread.
//!
//! If that is one CPU, a thread that executes a call for another needs the waiting thread's CPU, so
//! calls are left in place. A program that has bound only its first thread to one CPU changes
//! between both behaviours, depending on the last reading thread.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use manycore_interpose::process;
use syscalls::{Sysno, raw_syscall};

use super::raw;

/// As many CPUs as Linux can be built for.
const WORDS: usize = 8192 / 64;

/// The time between two looks, in nanoseconds.
const PERIOD: u64 = 500_000_000;

static LOOKED: AtomicU64 = AtomicU64::new(0);

/// A number that changes with the mask; 0 until the mask is first read.
static VERSION: AtomicU32 = AtomicU32::new(0);

/// Whether the process may use one CPU.
static IS_ONE: AtomicBool = AtomicBool::new(false);

static MASK: [AtomicU64; WORDS] = [const { AtomicU64::new(!0) }; WORDS];

/// Which mask a thread is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(u32);

/// Looks if that is due.
#[inline]
pub fn look() {
    let looked = LOOKED.load(Ordering::Relaxed); // Relaxed: decides only which thread looks, and when
    let now = raw::coarse_nanoseconds();
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

/// Reads the mask. Two threads that read it at the same time store the same value, or the next read
/// corrects it.
fn read() {
    let (mut mask, mut own) = ([0_u64; WORDS], [0_u64; WORDS]);
    // If the process' first thread has ended, it is not known.
    let is_known = mask_of(process::id(), &mut mask);
    if !mask_of(0, &mut own) && !is_known {
        return;
    }
    mask.iter_mut().zip(own).for_each(|(word, own)| *word |= own);
    let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
    IS_ONE.store(count == 1, Ordering::Relaxed); // Relaxed: decides only which thread executes calls
    // Relaxed: the words have no order among them; a thread that reads them halfway changed finds
    // another version soon.
    let is_other = MASK
        .iter()
        .zip(mask)
        .fold(false, |other, (word, new)| word.swap(new, Ordering::Relaxed) != new || other);
    if is_other {
        // Release: partner of the Acquire in `version`.
        VERSION.fetch_add(1, Ordering::Release);
    }
}

/// Reads the mask of a thread, 0 for the calling one. Returns false if the kernel has no such
/// thread.
fn mask_of(thread: u32, mask: &mut [u64; WORDS]) -> bool {
    // SAFETY: the kernel writes no more bytes than the mask has.
    let length = unsafe {
        raw_syscall!(Sysno::sched_getaffinity, thread, size_of_val(mask), mask.as_mut_ptr())
    };
    (length as isize) > 0
}

/// Whether the process may use no more than one CPU, as far as was last seen.
#[inline]
pub fn is_one() -> bool {
    IS_ONE.load(Ordering::Relaxed) // Relaxed: as in `read`
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

/// Binds the calling thread, which is new, to a CPU; or to the permitted CPUs if the process may
/// not use that one. Returns the mask that it used.
pub fn bind_new(cpu: Option<u16>) -> Version {
    read();
    let version = version();
    bind(cpu);
    version
}

/// As [`bind_new`], for a thread that was bound by an older mask, if there is a newer one.
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

/// Called in the child of a fork, which may have another mask soon.
pub fn forked() {
    LOOKED.store(0, Ordering::Relaxed); // Relaxed: there is no other thread
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets the mask of a thread, 0 for the calling one.
    fn give(thread: u32, mask: &[u64; WORDS]) {
        // SAFETY: the kernel reads no more bytes than the mask has.
        let failed = unsafe {
            raw_syscall!(Sysno::sched_setaffinity, thread, size_of_val(mask), mask.as_ptr())
        };
        assert_eq!(failed, 0);
    }

    fn with(cpu: usize) -> [u64; WORDS] {
        core::array::from_fn(|word| if word == cpu / 64 { 1 << (cpu % 64) } else { 0 })
    }

    /// In a child process, because the masks are shared by all threads of a process.
    #[test]
    fn a_thread_follows_the_masks_of_the_first_thread_and_of_who_looks() {
        // SAFETY: the child has one thread, which uses memory that the fork has copied, and ends by
        // `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let followed = std::panic::catch_unwind(follow);
            // SAFETY: ends the child without running any other code of the process.
            unsafe { libc::_exit(i32::from(followed.is_err())) };
        }
        let mut status = 0;
        // SAFETY: the kernel writes one number, into `status`.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }

    fn follow() {
        let mut all = [0; WORDS];
        assert!(mask_of(0, &mut all));
        let mut cpus = (0..64 * WORDS).filter(|cpu| all[cpu / 64] >> (cpu % 64) & 1 != 0);
        let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
            return eprintln!("one CPU: there is no other to go to");
        };
        read();
        assert!(!is_one());
        let (mut bound, mut here) = (version(), [0; WORDS]);
        give(0, &with(first));
        read();
        assert!(is_one() && has(first as u16) && !has(second as u16));
        bind_again(Some(second as u16), &mut bound);
        assert!(mask_of(0, &mut here));
        assert_eq!(here, with(first), "its own CPU is forbidden");
        // The mask of the thread that reads the masks counts as well.
        std::thread::spawn(move || {
            give(0, &with(second));
            read();
        })
        .join()
        .unwrap();
        assert!(!is_one() && has(first as u16) && has(second as u16));
        bind_again(Some(second as u16), &mut bound);
        assert!(mask_of(0, &mut here));
        assert_eq!(here, with(second), "its own CPU is allowed again");
    }
}
