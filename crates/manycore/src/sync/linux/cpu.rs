//! Which CPU, and how many.

use core::sync::atomic::{AtomicU32, Ordering};

use syscalls::{Sysno, raw_syscall};

/// How many CPUs this process may run on, at least 1. Asked of the kernel once.
pub fn count() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: every thread computes the same number.
    match COUNT.load(Ordering::Relaxed) {
        0 => {
            let count = allowed();
            COUNT.store(count, Ordering::Relaxed); // Relaxed: as above
            count
        }
        count => count,
    }
}

fn allowed() -> u32 {
    let mut mask = [0u64; 128];
    // SAFETY: the kernel writes at most the given number of bytes into the mask.
    let written =
        unsafe { raw_syscall!(Sysno::sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if written > size_of_val(&mask) {
        return 1; // an error number
    }
    mask.iter().map(|word| word.count_ones()).sum::<u32>().max(1)
}
