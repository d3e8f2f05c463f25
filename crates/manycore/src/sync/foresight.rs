//! Hints to a core about its next accesses, and facts that only a simulator needs because a core
//! cannot know them.

/// Asks for the line of an address ahead of its use. Any address is allowed: nothing is read.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction is a hint: it reads nothing that the program can see, and does not
    // fault, whatever the address is.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: the instruction is a hint: it reads nothing that the program can see, and does not
    // fault, whatever the address is.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    let _ = address;
}

/// Marks the read of a value in a large object of which the simulator has charged only the head. On
/// this back end it does nothing.
#[inline(always)]
pub fn touch<T>(_value: *const T) {}

/// Marks a branch that goes one way as often as the other, with no pattern that a core could
/// predict. On this back end it does nothing.
#[inline(always)]
pub fn unforeseen_branch() {}
