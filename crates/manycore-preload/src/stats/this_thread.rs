//! The kernel's data about the calling thread: its CPU, its time on CPUs, and its name.

use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};

use syscalls::Sysno;

use super::asked::asked;
use manycore_interpose::directory::store_bytes;
use manycore_interpose::objects;

/// The offset of a thread's restartable-sequences area from the thread pointer; 0 if glibc has
/// none.
static RSEQ: AtomicIsize = AtomicIsize::new(0);
static HAS_RSEQ: AtomicBool = AtomicBool::new(false);

pub fn prepare() {
    let offset = objects::address(c"__rseq_offset");
    let (Some(offset), Some(size)) = (offset, objects::address(c"__rseq_size")) else { return };
    // SAFETY: glibc's variables of these names have these types since version 2.35, and are set
    // before any code of others runs.
    let (offset, size) = unsafe { (*(offset as *const isize), *(size as *const u32)) };
    if size > 0 {
        // Relaxed, both: threads that do not see them yet ask the kernel.
        RSEQ.store(offset, Ordering::Relaxed);
        HAS_RSEQ.store(true, Ordering::Relaxed);
    }
}

/// The CPU on which the calling thread runs. This is a load if glibc has registered restartable
/// sequences.
#[inline]
pub fn cpu() -> u32 {
    // Relaxed, both: a thread that does not see them yet asks the kernel.
    if !HAS_RSEQ.load(Ordering::Relaxed) {
        // SAFETY: `sched_getcpu` takes no arguments.
        return unsafe { libc::sched_getcpu() } as u32;
    }
    let cpu: u32;
    // SAFETY: glibc has registered the area at this offset from the thread pointer, in each thread;
    // its second word is the CPU's number.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {cpu:e}, dword ptr fs:[{offset} + 4]",
            offset = in(reg) RSEQ.load(Ordering::Relaxed), // Relaxed: as above
            cpu = out(reg) cpu,
            options(readonly, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mrs {place}, tpidr_el0",
            "add {place}, {place}, {offset}",
            "ldr {cpu:w}, [{place}, #4]",
            offset = in(reg) RSEQ.load(Ordering::Relaxed), // Relaxed: as above
            place = out(reg) _,
            cpu = out(reg) cpu,
            options(readonly, nostack, preserves_flags),
        );
    }
    cpu
}

/// The calling thread's CPU time, in nanoseconds.
pub fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, into `time`.
    unsafe { asked!(Sysno::clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Notes the calling thread's name.
pub fn note_name(place: &[AtomicU64; 2]) {
    let mut name = [0_u8; 16];
    // SAFETY: the kernel writes at most sixteen bytes, which `name` has.
    unsafe { asked!(Sysno::prctl, libc::PR_GET_NAME, name.as_mut_ptr()) };
    store_bytes(place, &name);
}
