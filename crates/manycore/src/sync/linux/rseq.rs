//! The CPU of a thread as the kernel keeps it in the thread's own memory, in the area that a C
//! library has registered for restartable sequences, as glibc does since 2.35. To read it takes no
//! system call, which a filter may forbid.

use core::arch::asm;
use core::sync::atomic::{AtomicIsize, AtomicU32, Ordering};

/// Of the kernel's `struct rseq`.
const CPU_ID: isize = 4;

/// The area's distance from the thread pointer; 0 if nobody has said it.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Takes CPUs from this area from now on, for the rest of the process.
///
/// # Safety
///
/// At this distance from the thread pointer each thread has such an area, registered or not, from
/// its start to its end: it is what glibc's variable `__rseq_offset` says.
pub unsafe fn area_is_at(offset: isize) {
    // Relaxed: the areas are there already, and the number is all there is to know.
    OFFSET.store(offset, Ordering::Relaxed);
}

/// Where the calling thread runs now; `None` if there is no such area.
#[inline]
pub fn cpu() -> Option<u32> {
    // Relaxed: as in `area_is_at`.
    let offset = OFFSET.load(Ordering::Relaxed);
    if offset == 0 {
        return None;
    }
    let thread: *const u8;
    // SAFETY: programs may read the register, and the instruction changes nothing else.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) thread, options(pure, nomem, nostack)) };
    // SAFETY: the area is there as long as its thread runs (contract of `area_is_at`), and aligned.
    // The kernel writes to it while this thread does not run.
    let cpu = unsafe { AtomicU32::from_ptr(thread.offset(offset + CPU_ID).cast_mut().cast()) };
    // Relaxed: the value is a hint. It is negative where nothing is registered.
    Some(cpu.load(Ordering::Relaxed)).filter(|cpu| cpu.cast_signed() >= 0)
}
