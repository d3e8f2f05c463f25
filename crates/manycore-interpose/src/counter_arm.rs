//! The same as `counter.rs` on AArch64, where no program forbids its threads to read the counter.
//! The remaining tasks are to notice that a program is about to give up system calls, and not to
//! need one for a thread's CPU.

use libc::{c_int, c_long};
use manycore::sync::cpu;

use crate::objects;

/// Finds where the kernel keeps each thread's CPU, if glibc has told it to.
pub fn prepare() {
    if let Some(offset) = objects::address(c"__rseq_offset") {
        // SAFETY: the address of glibc's variable, which is constant and says where the areas are.
        unsafe { cpu::area_is_at(*(offset as *const isize)) };
    }
}

/// Called before the program calls `prctl`. Returns whether the call restricts it to four system
/// calls.
pub fn before_prctl(option: c_int, value: usize) -> bool {
    option == libc::PR_SET_SECCOMP && value == libc::SECCOMP_MODE_STRICT as usize
}

/// The same of a system call by its number.
pub fn before_syscall(number: c_long, first: usize, second: usize) -> bool {
    match number {
        libc::SYS_prctl => before_prctl(first as c_int, second),
        libc::SYS_seccomp => first == libc::SECCOMP_SET_MODE_STRICT as usize,
        _ => false,
    }
}

/// Times are as fine as the counter.
pub fn step_ns() -> Option<u32> {
    None
}
