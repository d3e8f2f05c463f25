//! Time in ticks of a counter that is read without a system call.

#[cfg(feature = "std")]
mod boundary;

#[cfg(target_arch = "x86_64")]
use super::atomic::AtomicU64;
use super::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The function that gives ticks when this process may not read the counter; null if it may.
static OTHER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Takes ticks from `other` from now on, for the rest of the process. Linux can forbid a thread to
/// read the counter (`PR_SET_TSC`; on x86-64 also seccomp's strict mode), and sends it SIGSEGV if
/// it does.
pub fn replace(other: extern "C" fn() -> u64) {
    // Release: partner of the Acquire in `replaced`, so that a thread that finds the clock finds it
    // set.
    OTHER.store(other as *mut (), Ordering::Release);
}

#[inline]
pub(in crate::sync) fn replaced() -> Option<extern "C" fn() -> u64> {
    // Acquire: partner of the Release in `replace`.
    let other = OTHER.load(Ordering::Acquire);
    // SAFETY: the word is null, which is `None` of such an option, or a function of this type,
    // which `replace` has stored.
    unsafe { core::mem::transmute(other) }
}

/// Now, in ticks of the time-stamp counter, which has a constant rate and is synchronised between
/// CPUs on any machine of the last fifteen years. Reading it does not serialise execution, so it is
/// exact enough for intervals of a hundred ticks and more.
#[inline]
pub fn now() -> u64 {
    match replaced() {
        Some(other) => other(),
        // SAFETY: every x86-64 CPU has the instruction, and no code has announced that it is
        // forbidden.
        #[cfg(target_arch = "x86_64")]
        None => unsafe { core::arch::x86_64::_rdtsc() },
        #[cfg(target_arch = "aarch64")]
        None => {
            let ticks: u64;
            // SAFETY: reads the virtual counter, which Linux opens to user space; no code has
            // announced that it is forbidden.
            unsafe {
                core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
            }
            ticks
        }
    }
}

/// Whether `ticks` have passed since [`now`] was `start`: for a loop that polls until then at most.
#[inline]
pub fn has_passed(start: u64, ticks: u64) -> bool {
    now().wrapping_sub(start) > ticks
}

/// Ticks in nanoseconds, to a hundredth. On x86-64 the first call measures the length of a tick,
/// for which it asks the system for the time. It returns 20 us after [`prepare`], or after 20 us.
#[inline]
pub fn nanoseconds(ticks: u64) -> u64 {
    let length = match LENGTH.load(Ordering::Relaxed) {
        0 => measured_length(),
        length => length,
    };
    ((u128::from(ticks) * u128::from(length)) >> FRACTION) as u64
}

/// The length of a tick, in nanoseconds with a [`FRACTION`]; 0 if that is not known yet. It is set
/// once, because another value would let time jump.
///
/// Relaxed throughout: the length depends on no other memory.
static LENGTH: AtomicU32 = AtomicU32::new(0);
/// With this fraction the number has room for a tick of 1 us, and gives one of 200 ps to a
/// millionth.
const FRACTION: u32 = 22;

#[cfg(target_arch = "x86_64")]
#[cold]
fn measured_length() -> u32 {
    const NANOSECONDS: u64 = 20_000;
    // The longest wait if the system does not tell the time. Afterwards a tick is assumed to be
    // that of 2.5 GHz.
    const TICKS: u64 = 1_000_000;
    // Acquire: partner of the Release in `prepare`.
    let start = match FIRST[0].load(Ordering::Acquire) {
        0 => both(),
        time => (time, FIRST[1].load(Ordering::Relaxed)), // Relaxed: written before the time
    };
    let passed = loop {
        let now = both();
        let passed = (now.0.wrapping_sub(start.0), now.1.wrapping_sub(start.1).max(1));
        if passed.0 >= NANOSECONDS {
            break passed;
        }
        if passed.1 >= TICKS {
            break (2, 5);
        }
    };
    let length = (passed.0 << FRACTION) / passed.1;
    set_length(length)
}

/// The length of a tick for all threads: the value of the first thread that has measured it.
fn set_length(length: u64) -> u32 {
    let length = length.clamp(1, u64::from(u32::MAX)) as u32;
    // Relaxed, both: see `LENGTH`.
    let set = LENGTH.compare_exchange(0, length, Ordering::Relaxed, Ordering::Relaxed);
    set.map_or_else(|first| first, |_| length)
}

/// The first read of both clocks: the time in nanoseconds (0 if there was none), and ticks.
#[cfg(target_arch = "x86_64")]
static FIRST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Begins to measure the length of a tick. For a thread that does other work before it needs the
/// result. Returns the result of [`both`].
#[cfg(target_arch = "x86_64")]
pub fn prepare() -> (u64, u64) {
    let (time, ticks) = both();
    FIRST[1].store(ticks, Ordering::Relaxed); // Relaxed: read after the time
    // Release: partner of the Acquire in `measured_length`.
    FIRST[0].store(time, Ordering::Release);
    (time, ticks)
}

/// The result of [`both`]: the length of a tick needs no measurement.
#[cfg(target_arch = "aarch64")]
pub fn prepare() -> (u64, u64) {
    both()
}

/// The monotonic clock in nanoseconds, and the counter at the same time. It takes the shortest of
/// three reads, because the two clocks differ if the thread loses its CPU between them.
pub fn both() -> (u64, u64) {
    let look = || {
        let (before, time, after) = (now(), super::monotonic(), now());
        let took = after.wrapping_sub(before);
        (took, time.as_nanos() as u64, before.wrapping_add(took / 2))
    };
    let (_, time, ticks) = look().min(look()).min(look());
    (time, ticks)
}

#[cfg(target_arch = "aarch64")]
#[cold]
fn measured_length() -> u32 {
    let frequency: u64;
    // SAFETY: reads the frequency of the virtual counter, which Linux opens to user space.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack)) };
    set_length((1_000_000_000 << FRACTION) / frequency.max(1))
}

/// Reads the counter as [`now`] does, after all instructions before it are done, and before any
/// later one begins. Stores may not be visible yet: if they have to be, put a read-modify-write in
/// between.
#[inline]
pub fn ordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instructions. A load fence waits for all instructions before
    // it, and holds up all that follow.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = now();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: fences, which every processor has.
    unsafe {
        core::arch::asm!("dmb ish", "isb", options(nostack));
        let ticks = now();
        core::arch::asm!("isb", options(nostack));
        ticks
    }
}

/// The largest difference of two CPUs' counters, in ticks. The first call measures it. None where
/// that is not possible.
pub fn boundary() -> Option<u64> {
    #[cfg(feature = "std")]
    return boundary::boundary();
    #[cfg(not(feature = "std"))]
    None
}
