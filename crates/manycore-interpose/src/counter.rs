//! Times where the processor's counter may not be read.
//!
//! The kernel can forbid a thread to read the counter: by `PR_SET_TSC` (on AArch64 since Linux
//! 6.12), and on x86-64 in seccomp's strict mode. If the thread reads it nevertheless, SIGSEGV ends
//! it, and also the threads that it makes. The libraries see the program's call coming, and
//! permanently change to the kernel's coarse clock in every thread; that clock is read from memory
//! without the counter and without a system call. If the call fails afterwards, times are coarser
//! than necessary.
//!
//! # Limit
//!
//! A system call that the program makes by an instruction of its own is not seen.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::{c_int, c_long, clockid_t, timespec};
use manycore::sync::clock;
use syscalls::{Sysno, raw_syscall};

use crate::next::Function;

// Relaxed throughout, except for the rate: all other values were stored before it, by Release.

/// One moment in the units of both clocks: ticks and nanoseconds.
static START: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Ticks in 2^20 nanoseconds; 0 while the counter may be read.
static RATE: AtomicU64 = AtomicU64::new(0);
/// Nanoseconds between two values of the coarse clock.
static STEP_NS: AtomicU32 = AtomicU32::new(0);

static CLOCK_GETTIME: Function = Function::new(c"clock_gettime");

/// The shortest time in which the rate can be determined to a thousandth.
const SHORTEST_NS: u64 = 2_000_000;

/// Called when the library starts: determines all values that can be known.
pub fn prepare() {
    CLOCK_GETTIME.address();
    let (ns, ticks) = clock::prepare();
    START[0].store(ticks, Ordering::Relaxed);
    START[1].store(ns, Ordering::Relaxed);
    #[cfg(target_arch = "aarch64")]
    find_cpu();
}

/// Finds where the kernel keeps each thread's CPU, if glibc has told it to: where no instruction
/// gives the CPU, no system call needs to.
#[cfg(target_arch = "aarch64")]
fn find_cpu() {
    if let Some(offset) = crate::objects::address(c"__rseq_offset") {
        // SAFETY: glibc's `const ptrdiff_t` of this name: set before any of our code runs, never
        // changed, and the distance of each thread's area from its thread pointer.
        unsafe { manycore::sync::cpu::area_is_at(*(offset as *const isize)) };
    }
}

/// Called before the program calls `prctl`. Returns whether the call restricts it to four system
/// calls.
pub fn before_prctl(option: c_int, value: usize) -> bool {
    let is_strict = option == libc::PR_SET_SECCOMP && value == libc::SECCOMP_MODE_STRICT as usize;
    let forbids = is_strict && cfg!(target_arch = "x86_64");
    if forbids || option == libc::PR_SET_TSC && value == libc::PR_TSC_SIGSEGV as usize {
        go_without();
    }
    is_strict
}

/// The same of a system call by its number.
pub fn before_syscall(number: c_long, first: usize, second: usize) -> bool {
    match number {
        libc::SYS_prctl => before_prctl(first as c_int, second),
        libc::SYS_seccomp if first == libc::SECCOMP_SET_MODE_STRICT as usize => {
            before_prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT as usize)
        }
        _ => false,
    }
}

/// Nanoseconds between two values of the clock; `None` while it is as fine as the counter.
pub fn step_ns() -> Option<u32> {
    // Acquire: partner of the Release in `go_without`.
    (RATE.load(Ordering::Acquire) != 0).then(|| STEP_NS.load(Ordering::Relaxed))
}

#[cold]
fn go_without() {
    if START[1].load(Ordering::Relaxed) == 0 {
        prepare();
    }
    // Acquire: as in `step_ns`.
    if RATE.load(Ordering::Acquire) != 0 {
        return;
    }
    let [ticks, ns] = loop {
        let (ns, ticks) = clock::both();
        let now = [ticks, ns];
        let since = [0, 1].map(|n: usize| now[n].wrapping_sub(START[n].load(Ordering::Relaxed)));
        if since[1] >= SHORTEST_NS {
            LAST.fetch_max(ticks, Ordering::Relaxed);
            break since;
        }
    };
    let mut step = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, into `step`.
    unsafe {
        raw_syscall!(Sysno::clock_getres, libc::CLOCK_MONOTONIC_COARSE, &raw mut step);
    }
    STEP_NS.store(step.tv_nsec as u32, Ordering::Relaxed);
    let rate = (u128::from(ticks) << 20) / u128::from(ns);
    // Release: partner of the Acquires here. All threads use the rate of the first one to get here:
    // with another rate time would jump.
    let _ = RATE.compare_exchange(0, rate as u64, Ordering::Release, Ordering::Relaxed);
    // Measures the length of a tick now, while the counter may still be read.
    clock::nanoseconds(0);
    clock::replace(coarse);
}

/// The clock advances by this many ticks with each read of the coarse clock: about the duration of
/// one poll.
const LOOK: u64 = 100;
/// The time that was given last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The coarse clock, in ticks. The kernel's clock is behind by about a step. This clock adds that
/// step, and is never before the last time of the counter. On an idle machine the kernel's steps
/// may come late; it may even be behind the library's start by more than a step. Between two steps,
/// each read advances the time, up to the next step at most: otherwise a thread that polls for a
/// short while would poll for a whole step.
extern "C" fn coarse() -> u64 {
    type ClockGettime = unsafe extern "C" fn(clockid_t, *mut timespec) -> c_int;
    // SAFETY: glibc's function of this name has this signature.
    let read: ClockGettime = unsafe { core::mem::transmute(CLOCK_GETTIME.address()) };
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the function writes one timespec, into `now`.
    unsafe { read(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    let [ticks, ns] = [0, 1].map(|n: usize| START[n].load(Ordering::Relaxed));
    let step_ns = u64::from(STEP_NS.load(Ordering::Relaxed));
    let rate = u128::from(RATE.load(Ordering::Acquire)); // Acquire: as in `step_ns`
    let now = (nanoseconds(&now) + step_ns).saturating_sub(ns);
    let [now, step] = [now, step_ns].map(|ns| ((u128::from(ns) * rate) >> 20) as u64);
    let now = ticks + now;
    let now = now.max((LAST.load(Ordering::Relaxed) + LOOK).min(now + step));
    now.max(LAST.fetch_max(now, Ordering::Relaxed))
}

fn nanoseconds(time: &timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
