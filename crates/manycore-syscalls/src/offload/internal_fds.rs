//! The descriptors that are ours, the workers' and not the program's: which they are, and that no
//! child keeps any.
//!
//! The child of a fork gets all descriptors of its parent. It closes those that are noted as the
//! parent's workers': a duplicate of a client's connection that stayed open in a child would keep
//! that connection from ending. So no fork may come between the creation of a descriptor and its
//! note, nor between the removal of the note and its close.
//!
//! # Limit
//!
//! Two kinds of fork may come in between: a fork that libc does not make, and one that has waited
//! [`PATIENCE`] for us (a signal handler may make it that interrupted the code for which it waits).
//! So may a change that has waited as long for a fork: a fork of a very large process can take
//! longer. If a program closes a number that it has not opened, at the moment at which it becomes
//! ours, it closes ours.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use manycore::sync::{cpu, hint};
use syscalls::{Sysno, raw_syscall};

use super::raw;
use super::slab::{Slab, Zeroed};

/// A bit for each descriptor that is ours: as many as a process can have by default.
static OURS: Slab<Bits, { (1 << 20) / 64 }> = Slab::new();

#[derive(Debug)]
struct Bits(AtomicU64);

// SAFETY: it consists of a number, for which zero is a value.
unsafe impl Zeroed for Bits {}

/// Where a descriptor's bit is.
fn bit(descriptor: i32) -> Option<(&'static AtomicU64, u64)> {
    let number = usize::try_from(descriptor).ok()?;
    Some((&OURS.get()?.get(number / 64)?.0, 1 << (number % 64)))
}

/// Whether a descriptor is ours.
pub fn owns(descriptor: i32) -> bool {
    // Relaxed: only the kernel tells a thread of a descriptor.
    bit(descriptor).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
}

/// All descriptors of ours have lower numbers.
static BEYOND: AtomicU32 = AtomicU32::new(0);

/// Whether a process was made that shares its descriptors with this one. From then on no child
/// closes any, because it does not know which ones it shares with whom.
static SHARED: AtomicBool = AtomicBool::new(false);

/// Notes that a process will be made that shares its descriptors with this one.
pub fn share() {
    SHARED.store(true, Ordering::Relaxed); // Relaxed: read in children only
}

/// Closes all our descriptors in the child of a fork: they belong to the parent's workers. Its only
/// thread calls this.
pub fn forked() {
    let is_shared = SHARED.load(Ordering::Relaxed); // Relaxed, as in `share`
    FORKING.store(0, Ordering::Relaxed); // Relaxed, all: there is no other thread
    CHANGING.iter().for_each(|stripe| stripe.0.store(0, Ordering::Relaxed));
    let beyond = BEYOND.swap(0, Ordering::Relaxed); // Relaxed: there is no other thread
    let words = OURS.mapped().unwrap_or(&[]).iter().take(beyond.div_ceil(64) as usize);
    for (at, word) in words.enumerate() {
        let mut bits = word.0.swap(0, Ordering::Relaxed); // Relaxed: as above
        while bits != 0 && !is_shared {
            let descriptor = at * 64 + bits.trailing_zeros() as usize;
            // SAFETY: the descriptor is ours, so the program does not know it, and its user is not
            // in this process.
            unsafe { raw_syscall!(Sysno::close, descriptor) };
            bits &= bits - 1;
        }
    }
}

/// Threads that are changing the set of our descriptors, counted for groups of CPUs.
static CHANGING: [Stripe; STRIPES] = [const { Stripe(AtomicU32::new(0)) }; STRIPES];

/// The number of threads that fork now, or need our descriptors to stay for another reason.
static FORKING: AtomicU32 = AtomicU32::new(0);

const STRIPES: usize = 16;

/// No thread waits longer than this many nanoseconds.
const PATIENCE: u64 = if cfg!(test) { 10_000_000_000 } else { 100_000_000 };

#[derive(Debug)]
#[repr(align(128))]
struct Stripe(AtomicU32);

/// Makes a change that no fork is to see half of.
fn whole<R>(change: impl FnOnce() -> R) -> R {
    let stripe = &CHANGING[cpu::current() as usize % STRIPES].0;
    let mut since = None;
    loop {
        // SeqCst, both: partners of the two in `before_fork`: either this sees the fork, or the
        // fork sees this.
        stripe.fetch_add(1, Ordering::SeqCst);
        if FORKING.load(Ordering::SeqCst) == 0 || has_waited(&mut since) {
            break;
        }
        // Relaxed: nothing was done.
        stripe.fetch_sub(1, Ordering::Relaxed);
        hint::sleep_zero();
    }
    let result = change();
    // Release: partner of the load in `before_fork`.
    stripe.fetch_sub(1, Ordering::Release);
    result
}

/// Whether it is long enough since this was first asked.
fn has_waited(since: &mut Option<u64>) -> bool {
    let now = raw::coarse_nanoseconds();
    now.wrapping_sub(*since.get_or_insert(now)) > PATIENCE
}

/// Waits before a fork until no change is half done.
pub fn before_fork() {
    // SeqCst: partner of the load in `whole`.
    FORKING.fetch_add(1, Ordering::SeqCst);
    let mut since = None;
    for stripe in &CHANGING {
        // SeqCst: partner of the first addition in `whole`; it also acquires from the Release
        // there, for what was changed.
        while stripe.0.load(Ordering::SeqCst) != 0 && !has_waited(&mut since) {
            hint::yield_now();
        }
    }
}

/// In the parent, after the fork was made or refused.
pub fn after_fork() {
    // Relaxed, both: a waiting thread needs no other data. A child that a handler forked earlier
    // has no descriptors to take back.
    let less = |forking: u32| forking.checked_sub(1);
    _ = FORKING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// Runs `f` while no descriptor becomes ours and none of ours is closed, so that answers of
/// [`owns`] stay true. `f` itself makes and closes none of ours.
pub fn at_rest<R>(f: impl FnOnce() -> R) -> R {
    before_fork();
    let result = f();
    after_fork();
    result
}

/// Whether a descriptor of this number may become ours.
pub fn may_own(descriptor: i32) -> bool {
    // Most numbers need no call of the kernel: ours begin at three quarters of the smallest limit,
    // or higher.
    let number = u64::from(descriptor.cast_unsigned());
    number >= NUMBERS_MIN / 4 * 3 && numbers().is_some_and(|numbers| numbers.contains(&number))
}

/// Closes a descriptor of ours.
pub fn close(descriptor: i32) {
    whole(|| end(descriptor));
}

/// Notes, as part of a change, that a descriptor is not ours any more, and closes it.
fn end(descriptor: i32) {
    if let Some((word, bit)) = bit(descriptor) {
        word.fetch_and(!bit, Ordering::Relaxed); // Relaxed: as in `owns`
    }
    // SAFETY: the descriptor is ours, and the callers have done with it; closing touches no memory.
    unsafe { raw_syscall!(Sysno::close, descriptor) };
}

/// Our descriptors have numbers from here on, or from three quarters of the process' limit on. The
/// program's descriptors keep the usual numbers.
const NUMBERS_FROM: u64 = 2048;

/// A process with a smaller limit has none of our descriptors, since it may need every number.
const NUMBERS_MIN: u64 = 256;

/// From which number on ours are, and to which: the last eighth is the program's. None if it may
/// have too few.
fn numbers() -> Option<core::ops::Range<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one `rlimit`, into `limit`.
    unsafe { raw_syscall!(Sysno::prlimit64, 0, libc::RLIMIT_NOFILE, 0, &raw mut limit) };
    let limit = limit.rlim_cur;
    (limit >= NUMBERS_MIN).then(|| NUMBERS_FROM.min(limit / 4 * 3)..limit / 8 * 7)
}

/// Whether the process may have this many descriptors that some can be ours.
pub fn has_numbers() -> bool {
    numbers().is_some()
}

/// Duplicates a descriptor under a number of ours, closed on exec; `None` if there is no room.
pub fn duplicate(descriptor: i32) -> Option<i32> {
    whole(|| copy(descriptor))
}

/// As part of a change: duplicates a descriptor, and notes that the duplicate is ours.
fn copy(descriptor: i32) -> Option<i32> {
    let numbers = numbers()?;
    // SAFETY: `fcntl` with this command takes numbers only.
    let copy =
        unsafe { raw_syscall!(Sysno::fcntl, descriptor, libc::F_DUPFD_CLOEXEC, numbers.start) };
    let copy = i32::try_from(copy.cast_signed()).ok().filter(|copy| *copy >= 0)?;
    if let Some((word, bit)) = bit(copy) {
        word.fetch_or(bit, Ordering::Relaxed); // Relaxed: as in `owns`
        BEYOND.fetch_max(copy as u32 + 1, Ordering::Relaxed); // Relaxed: for a child, where there is no other thread
    }
    if !numbers.contains(&(copy as u64)) {
        end(copy);
        return None;
    }
    Some(copy)
}

/// Makes a descriptor and gives it a number of ours. If there is no room, closes it. Passes errors
/// on.
pub fn make(make: impl FnOnce() -> i32) -> i32 {
    whole(|| {
        let descriptor = make();
        if descriptor < 0 {
            return descriptor;
        }
        let copy = copy(descriptor);
        end(descriptor);
        copy.unwrap_or(-libc::EMFILE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forks while other threads create and close our descriptors: each child closes all of them.
    #[test]
    fn a_fork_at_any_time_leaves_nothing_open() {
        const CHILDREN: u32 = 300;
        let begin = numbers().expect("a process may have some descriptors").start as i32;
        let goes_on = core::sync::atomic::AtomicBool::new(true);
        let left = std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while goes_on.load(Ordering::Relaxed) {
                        close(duplicate(2).expect("there is room"));
                    }
                });
            }
            let left = (0..CHILDREN).map(|_| left_open(begin)).sum::<i32>();
            goes_on.store(false, Ordering::Relaxed);
            left
        });
        assert_eq!(left, 0, "descriptors left open in {CHILDREN} children");
    }

    /// The number of descriptors among the first ones of ours that are open in a new child.
    fn left_open(begin: i32) -> i32 {
        before_fork();
        // SAFETY: the child makes system calls only, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            forked();
            // SAFETY: `fcntl` with this command takes numbers only.
            let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0;
            let left = (begin..begin + 8).filter(is_open).count();
            // SAFETY: ends the child without running any other code of the process.
            unsafe { libc::_exit(left as i32) };
        }
        after_fork();
        let mut status = 0;
        // SAFETY: the kernel writes one number, into `status`.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status}");
        libc::WEXITSTATUS(status)
    }
}
