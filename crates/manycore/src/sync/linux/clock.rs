//! Time in ticks of a counter that is read without a system call.

/// Now, in ticks: the time-stamp counter, constant-rate and synchronised between CPUs on any machine of the last
/// fifteen years. Not serialising: good for intervals of a hundred ticks and more.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instruction, and Linux lets user space execute it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: reads the virtual counter, which Linux opens to user space.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
}

/// Whether `ticks` have passed since [`now`] was `start`: for a loop that polls until then at most.
#[inline]
pub fn has_passed(start: u64, ticks: u64) -> bool {
    now().wrapping_sub(start) > ticks
}

/// [`now`], not before what comes earlier in the program is done, and before anything that comes later begins. Stores may
/// still be on their way: put a read-modify-write in between.
#[inline]
pub fn ordered() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has the instructions. A load fence waits for all instructions before it, and holds up all
    // that follow.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        let ticks = core::arch::x86_64::_rdtsc();
        core::arch::x86_64::_mm_lfence();
        ticks
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: fences, and a read of the virtual counter, which Linux opens to user space.
        unsafe {
            core::arch::asm!("dmb ish", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack));
        }
        ticks
    }
}

/// By how much two CPUs' counters may differ at most, in ticks: measured at the first call. None where that is not possible.
pub fn boundary() -> Option<u64> {
    #[cfg(feature = "std")]
    return super::boundary::boundary();
    #[cfg(not(feature = "std"))]
    None
}
